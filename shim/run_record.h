// SPDX-License-Identifier: Apache-2.0
// The record file of this process (protocol/run_record.h): created when memory first has to move,
// mapped, and removed at a clean exit (marked as ended in a folder that the user
// named); a process that is killed leaves it behind. No descriptor is
// kept, because a program may close them all. Space is reserved before it is written to, so that a
// full file system never kills the program. Any failure means: no record. Any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "protocol/run_record.h"

namespace atp::shim {

// The part of a device, mapped for the life of the process; null when there is no record.
protocol::RunRecordDevice* OpenRunRecord(int device);
// Room for `bytes` of a snapshot; null when it would be too long or there is no space.
char* ReserveSnapshot(int device, uint64_t snapshot, uint64_t bytes);

// What the file holds, for the page that is made at exit; empty when there is none.
std::vector<char> CopyRunRecord();
void EndRunRecord();  // at a clean exit
// The header alone, for a page of a run in which nothing had to move.
protocol::RunRecordHeader DescribeRun();

}  // namespace atp::shim
