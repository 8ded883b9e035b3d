// SPDX-License-Identifier: Apache-2.0
// Objects that a program holds by pointer. The sets tell a live handle from a stale or foreign one,
// so that a wrong handle gives an error code and not a crash. Under the driver's lock.
#pragma once

#include <unordered_set>

namespace atp::sim {

template <class T>
class HandleSet {
 public:
  // The object behind a handle, null when it is not alive.
  T* Get(const void* handle) const {
    auto* object = static_cast<T*>(const_cast<void*>(handle));
    return live_.count(object) ? object : nullptr;
  }
  T* Add(T* object) {
    live_.insert(object);
    return object;
  }
  void Remove(T* object) { live_.erase(object); }
  const std::unordered_set<T*>& all() const { return live_; }

 private:
  std::unordered_set<T*> live_;
};

}  // namespace atp::sim
