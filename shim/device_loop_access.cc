// SPDX-License-Identifier: Apache-2.0
// What the running plan takes a launch to touch, for ATP_ACCESS_STATS.
#include "shim/access_stats.h"
#include "shim/device_loop.h"

namespace atp::shim {

void DeviceLoop::CompareAccess(const LaunchView& launch) {
  std::shared_ptr<const Schedule> schedule;
  {
    Lock lock(traffic_.mutex());
    const bool planned = launched_.generation != 0 && launched_.generation == generation_;
    if (planned) schedule = schedule_;
  }
  shim::CompareAccess(launch, schedule.get(), launched_.position);
}

}  // namespace atp::shim
