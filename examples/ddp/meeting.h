// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a data-parallel job meet: a few numbers each and a barrier, in a file that all
// of them map. A rank that waits for others in vain ends with a message.
#pragma once

#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "examples/support/options.h"

namespace example {

inline constexpr int kMostRanks = 8;
inline constexpr int kStages = 2;

class Meeting {
 public:
  struct Rank {  // what a rank shows to the others
    cudaIpcMemHandle_t stages[kStages];
    float loss, ms;
    uint64_t checksum;
  };

  Meeting(const std::string& path, int rank, int ranks) : rank_(rank), ranks_(ranks) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) Fail("the file cannot be written", path);
    void* mapped = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) Fail("the file cannot be mapped", path);
    shared_ = static_cast<Shared*>(mapped);
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Rank& of(int rank) { return shared_->rank[rank]; }
  Rank& mine() { return of(rank_); }

  // Returns when all ranks have come, and sees what they wrote before.
  void Barrier() {
    using Clock = std::chrono::steady_clock;
    constexpr auto kPatience = std::chrono::minutes(2);
    const uint64_t mine = shared_->arrived.fetch_add(1) + 1;
    const uint64_t all = (mine + ranks_ - 1) / ranks_ * ranks_;
    const auto until = Clock::now() + kPatience;
    while (shared_->arrived.load() < all) {
      if (Clock::now() > until) Fail("other ranks have not come", std::to_string(rank_));
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  struct Shared {  // of zeros in a new file
    std::atomic<uint64_t> arrived;
    Rank rank[kMostRanks];
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  [[noreturn]] static void Fail(const char* what, const std::string& where) {
    std::fprintf(stderr, "ranks cannot meet: %s: %s\n", what, where.c_str());
    std::exit(kExitCudaError);
  }

  const int rank_, ranks_;
  Shared* shared_ = nullptr;
};

}  // namespace example
