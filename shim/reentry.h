// SPDX-License-Identifier: Apache-2.0
// A Reentry is held while a thread is inside a hook. Driver calls made meanwhile that come back to
// us (the driver, a profiler or our own code calling an exported name) go straight to the driver.
// Holding one is what "with the re-entry guard held" means elsewhere.
#pragma once

namespace atp::shim {

// Initial-exec: an ordinary thread-local of a shared object may allocate at first use, and hooks
// run inside allocators.
extern thread_local constinit unsigned t_hook_depth __attribute__((tls_model("initial-exec")));
// Where the program goes on after the outermost hook: an address in the code that called it. Null:
// not known.
extern thread_local constinit const void* t_hook_caller __attribute__((tls_model("initial-exec")));

class Reentry {
 public:
  explicit Reentry(const void* caller = nullptr) : outermost_(t_hook_depth++ == 0) {
    if (outermost_) t_hook_caller = caller;
  }
  ~Reentry() { --t_hook_depth; }
  Reentry(const Reentry&) = delete;
  Reentry& operator=(const Reentry&) = delete;
  bool outermost() const { return outermost_; }

 private:
  bool outermost_;
};

}  // namespace atp::shim
