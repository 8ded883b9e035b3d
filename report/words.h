// SPDX-License-Identifier: Apache-2.0
// Numbers and names as people read them: three digits and a unit. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

namespace atp::report {

std::string SayBytes(double bytes);                      // "2.1 GiB"
std::string SaySeconds(double seconds);                  // "26.1 ms"
std::string SayPercent(double part, double whole);       // "38 %"
std::string SayTimes(double ratio);                      // "1.04"
std::string SayCount(uint64_t count, const char* noun);  // "1 launch", "12 launches" (English)

// A kernel's name as its author wrote it, without return type and parameters.
std::string SayKernel(const std::string& symbol);

// A unit for the axis of a chart, so that its numbers stay short.
struct Unit {
  double factor;
  const char* name;
};
Unit TimeUnit(double seconds);
Unit BytesUnit(double bytes);

}  // namespace atp::report
