// SPDX-License-Identifier: Apache-2.0
// ATP_RECOMPUTE=shadow: planned launches that may run again do so into scratch memory.
#include "shim/device_loop.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {

void DeviceLoop::StartShadow() {
  const bool wanted = Settings().recompute == Recompute::kShadow || MayDrop();
  if (shadow_ != nullptr || !wanted) return;
  shadow_bytes_ = Shadow::ScratchBytes(budget_);
  shadow_ = new Shadow(context_, shadow_bytes_, turns_);
}

// The launch, at this position of the plan, is to run again when it has been submitted.
bool DeviceLoop::ShadowTakes(const LaunchView& launch, uint32_t position) {
  if (schedule_->repeatable == nullptr || !schedule_->drops.empty()) return false;
  const Again* again = AgainAt(*schedule_->repeatable, position);
  return shadow_->Wants(again, launch, statistics_.planned_periods);
}

// After ShadowTakes. False: the plan that the launch was of has ended meanwhile.
bool DeviceLoop::RunShadow(const LaunchView& launch, Lock& lock) {
  shadow_->Take(*AgainAt(*schedule_->repeatable, launched_.position));
  shadowed_[boundaries_ % 2] = true;
  lock.unlock();
  shadow_->Submit(launch);
  lock.lock();
  executor_->Changed();  // a free may wait for it
  return launched_.generation == generation_ && traffic_.active();
}

// A plan begins, or a period of it.
void DeviceLoop::FollowShadow() {
  if (shadow_ == nullptr || schedule_->repeatable == nullptr) return;
  shadow_->Expect(*schedule_->repeatable);
  shadow_->Poll();
  shadow_bytes_ = shadow_->bytes();
  if (shadow_of_ != schedule_->repeatable) shadow_told_ = false;
  shadow_of_ = schedule_->repeatable;
  if (shadow_told_) return;
  const Shadow::Result result = shadow_->Of(*shadow_of_);
  if (result.open > 0 && result.off.empty()) return;
  shadow_told_ = true;
  TellShadow(result);
  if (MayDrop() && result.open == 0) {
    shadow_->Rest();
    shadow_bytes_ = shadow_->bytes();
  }
}

void DeviceLoop::TellShadow(const Shadow::Result& result) {
  record_.Note(false, "%llu launches of a period gave the same bits when they ran again",
               static_cast<unsigned long long>(result.passed));
  ATP_LOG_INFO("device %d: run again: %llu launches of a period gave the same bits, they write %s",
               device_, static_cast<unsigned long long>(result.passed),
               HumanBytes(result.passed_bytes).text());
  if (result.too_large > 0) {
    ATP_LOG_INFO("  %llu write more than is compared at once, %s",
                 static_cast<unsigned long long>(result.too_large),
                 HumanBytes(shadow_bytes_).text());
  }
  for (const auto& [why, launches] : result.retired) {
    record_.Note(false, "%llu launches retired: %s", static_cast<unsigned long long>(launches),
                 why.c_str());
    ATP_LOG_INFO("  %llu retired: %s", static_cast<unsigned long long>(launches), why.c_str());
  }
  if (result.open > 0) {
    ATP_LOG_INFO("  %llu not looked at%s%s", static_cast<unsigned long long>(result.open),
                 result.off.empty() ? "" : ": ", result.off.c_str());
  }
}

// At the end: of the last plan, unless that has been told.
void DeviceLoop::EndShadow() {
  if (shadow_ == nullptr) return;
  shadow_->Poll();
  if (shadow_of_ != nullptr && !shadow_told_) TellShadow(shadow_->Of(*shadow_of_));
  ATP_LOG_INFO("device %d: launches ran again %llu times into scratch memory", device_,
               static_cast<unsigned long long>(shadow_->runs()));
}

}  // namespace atp::shim
