// SPDX-License-Identifier: Apache-2.0
// The statistics file (ATP_SIM_STATS): what the machine has counted, and how often each driver
// function was called.
#pragma once

#include <string>

namespace atp::sim {

class Driver;

// Machine::StatsJson with the driver's own counts added. Finishes outstanding work.
std::string StatsText(Driver& driver);

// Arranges that statistics and trace are on disk when the process ends by exit, return from main or
// quick_exit.
void WriteStatsAtExit();

// Writes the file now, if one is asked for. Under the driver's lock.
void WriteStats(Driver& driver);

}  // namespace atp::sim
