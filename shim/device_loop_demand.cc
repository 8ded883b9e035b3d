// SPDX-License-Identifier: Apache-2.0
// The part of a device's loop that looks after launches without a plan, and what it writes to the
// log.
#include "shim/device.h"
#include "shim/device_loop.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

unsigned long long Count(uint64_t n) { return n; }

}  // namespace

void DeviceLoop::AwaitQuiet(Lock& lock) {
  if (executor_ == nullptr || Quiet()) return;
  executor_->Await(lock, [&] { return Quiet(); });
}

void DeviceLoop::ServeOnDemand(const LaunchView& launch, Traffic::FetchEvents* arriving,
                               Lock& lock) {
  if (Settings().Disabled(kDisableDemand)) return;
  const bool first = demand_.counters().served == 0, rested = !demand_.serving();
  Demand::Terms terms;
  terms.room = Capacity();
  terms.piece_bytes = PieceBytes(budget_);
  terms.read_mostly = hints_.ReadMostlyWorks() && !Settings().Disabled(kDisableReadMostly);
  terms.alone_counts = PlainKeepsToBudget();
  launched_.demand = demand_.Before(launch, terms);
  if (first && demand_.serving()) {
    ATP_LOG_INFO("device %d: no period yet: what launches lack is fetched before them", device_);
  } else if (!rested && !demand_.serving() && demand_.verdict().given_up == 1) {
    ATP_LOG_INFO(
        "device %d: launches without a plan are left alone: when served they took %.2f of that "
        "time",
        device_, demand_.verdict().ratio);
  }
  if (launched_.demand == 0) return;
  believed_ = true;
  if (demand_.Queued()) executor_->Changed();
  if (!demand_.Lacked()) return;
  const auto issued = [&, wanted = demand_.Wanted()] { return demand_.Issued(wanted); };
  if (!issued() && !executor_->Await(lock, issued))
    return LetGo("a fetch did not start in time", lock);
  *arriving = demand_.LastFetches();
}

// False on a card that has more than the shim may use: memory that is left to the driver takes what
// there is, so what it costs says nothing about the budget.
bool DeviceLoop::PlainKeepsToBudget() const {
  const Device* device = DeviceOf(device_);
  // Nor does it keep to a part of a shared card.
  if (device != nullptr && device->share.load(std::memory_order_relaxed) != 0) return false;
  return device == nullptr || device->free_at_start <= budget_ + budget_ / 20;
}

// Other phases keep their plans; this one's launches are served on demand, if that pays.
void DeviceLoop::GiveUp(PhaseState* phase, const char* why) {
  if (phase == phase_) Break();
  phase->given_up = true;
  phase->schedule = nullptr;
  phase->best = nullptr;
  static std::atomic<bool> said{false};  // a start may have hundreds of short phases
  ATP_LOG_AT(said.exchange(true) ? LogLevel::kInfo : LogLevel::kWarn,
             "device %d: no plan for a phase of %u launches: %s", device_, phase->length, why);
  record_.Note(false, "no plan for a phase of %u launches: %s", phase->length, why);
}

void DeviceLoop::LogPlan(const Schedule& schedule) const {
  uint32_t idle = 0;
  for (uint32_t position = 0; position < schedule.length; ++position) {
    idle += schedule.IsIdle(position);
  }
  ATP_LOG_INFO(
      "device %d: plan %llu: period of %u launches, nothing to do for %u of them, something leaves "
      "behind %u; %.1f MiB in and %.1f MiB out a period, promise %.3f ms",
      device_, Count(statistics_.plans), schedule.length, idle, schedule.flagged,
      static_cast<double>(schedule.moved_in_bytes) / (1 << 20),
      static_cast<double>(schedule.moved_out_bytes) / (1 << 20), schedule.promise_seconds * 1e3);
}

void DeviceLoop::LogSummary() const {
  const Traffic::Counters& c = traffic_.counters();
  const double mib = 1 << 20;
  ATP_LOG_INFO(
      "device %d: %llu periods seen, %llu planned, %llu plans in %.1f ms of the processor, %llu "
      "breaks; moved %.1f MiB to the host in %llu calls, "
      "%.1f MiB to the device in %llu calls, %llu errors, %llu let go",
      device_, Count(statistics_.periods), Count(statistics_.planned_periods),
      Count(statistics_.plans), statistics_.planning_seconds * 1e3, Count(statistics_.breaks),
      static_cast<double>(c.evict_bytes) / mib, Count(c.evict_calls),
      static_cast<double>(c.fetch_bytes) / mib, Count(c.fetch_calls), Count(c.errors),
      Count(statistics_.let_go));
  if (statistics_.last_bound > 0) {
    ATP_LOG_INFO(
        "device %d: last measured period %.3f ms, %.2f x bound_safe (as the shim sees it, in "
        "the budget)",
        device_, statistics_.last_seconds * 1e3, statistics_.last_seconds / statistics_.last_bound);
  }
  const Demand::Counters& d = demand_.counters();
  if (d.served > 0) {
    ATP_LOG_INFO(
        "device %d: %llu launches served without a plan, %.1f MiB fetched, %.1f MiB evicted; the "
        "last ones compared took %.2f of the time that they take when left alone",
        device_, Count(d.served), static_cast<double>(d.fetched) / mib,
        static_cast<double>(d.evicted) / mib, demand_.verdict().ratio);
  }
}

}  // namespace atp::shim
