// SPDX-License-Identifier: Apache-2.0
// Where the record of a process is, and what it says (protocol/run_record.h). One thread.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/run_record_reader.h"

namespace atp::cli {

// The first usual folder for records that can be written to: where the shim would make its own.
std::filesystem::path RecordFolder();

// Of a live process what it has mapped; of one that has ended what it left in a usual folder.
std::optional<std::filesystem::path> FindRecord(pid_t pid);

// Processes that run under the shim and whose memory has had to move, as far as the caller may see
// them; by number.
struct RunningJob {
  pid_t pid = 0;
  protocol::RunRecord run;
};
std::vector<RunningJob> RunningJobs();

// Throws CommandError when the file cannot be read or is no record. The process may be writing to
// it meanwhile.
protocol::RunRecord ReadRecord(const std::filesystem::path& file);

// The page that a record asks for (ATP_REPORT), for a program that could not write it itself.
// False: it asks for none, or the file cannot be written.
bool WritePageOf(const protocol::RunRecord& run);
// Created for its owner only; no symbolic link is followed.
bool WritePrivately(const std::string& file, const std::string& text);

}  // namespace atp::cli
