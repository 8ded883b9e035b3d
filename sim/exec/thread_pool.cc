// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/thread_pool.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "sim/exec/exec.h"

namespace atp::sim {
namespace exec {
namespace {

std::atomic<unsigned> g_threads{0};  // 0 = as many as there are cores

class Pool {
 public:
  void Run(unsigned helpers, const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    while (started_ < helpers) {
      // Signals belong to the program's threads.
      sigset_t all, old;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &old);
      std::thread([this] { Loop(); }).detach();
      pthread_sigmask(SIG_SETMASK, &old, nullptr);
      ++started_;
    }
    work_ = &work;
    wanted_ = running_ = helpers;
    wake_.notify_all();
    lock.unlock();
    work();
    lock.lock();
    done_.wait(lock, [this] { return running_ == 0; });
    work_ = nullptr;
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return wanted_ > 0; });
      --wanted_;
      const std::function<void()>* work = work_;
      lock.unlock();
      (*work)();
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void()>* work_ = nullptr;
  unsigned started_ = 0, wanted_ = 0, running_ = 0;
};

// Never destroyed: its threads may outlive static destructors. Owned by one process; a child of
// fork makes its own.
Pool& ThePool() {
  static Pool* pool = nullptr;
  static pid_t owner = 0;
  if (pool == nullptr || owner != getpid()) {
    pool = new Pool;
    owner = getpid();
  }
  return *pool;
}

}  // namespace

unsigned ExecutionThreads() {
  unsigned threads = g_threads.load(std::memory_order_relaxed);
  return threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
}

void RunOnThreads(unsigned helpers, const std::function<void()>& work) {
  if (helpers == 0) {
    work();
  } else {
    ThePool().Run(helpers, work);
  }
}

}  // namespace exec

void SetExecutionThreads(unsigned threads) {
  exec::g_threads.store(threads, std::memory_order_relaxed);
}

}  // namespace atp::sim
