// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/launch.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "sim/exec/thread_pool.h"
#include "sim/exec/wave_merger.h"

namespace atp::sim::exec {
namespace {

constexpr uint64_t kMaxChunk = 64;  // blocks that one thread takes at a time
// Ordered kernels, in warp instructions: a new block usually runs to its end in its first turn;
// those beside it take shorter ones, and blocks of a cooperative grid, which wait for each other at
// every grid barrier, the shortest.
constexpr uint64_t kFirstTurn = 200000;
constexpr uint64_t kTurn = 20000;
constexpr uint64_t kGridTurn = 2000;
constexpr uint64_t kMaxResident = 4096;  // ordered kernels without a known wave
constexpr uint64_t kSmallLaunch = 4096;  // threads; not worth waking helpers for

// The launching thread may have been switched to flush-to-zero or another rounding mode by the
// program.
class DefaultFloatMode {
 public:
  DefaultFloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~DefaultFloatMode() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

struct ChunkResult {
  std::unique_ptr<TouchTable> touches;
  std::string log;
  Failure failure;
  uint64_t warp_instructions = 0, lane_instructions = 0, sectors = 0;
  uint64_t uninitialised_reads = 0;
  std::string first_uninitialised;
};

using RegionMap = std::map<uint64_t, Region>;

// Adds results up in block order; stops at the first failure.
class Collector {
 public:
  Collector(const Launch& launch, ExecResult* result, std::string* log)
      : launch_(launch), result_(result), log_(log), merger_(&result->waves) {}

  bool Add(const ChunkResult& chunk, bool ends_wave) {
    if (log_ != nullptr) log_->append(chunk.log);
    result_->warp_instructions += chunk.warp_instructions;
    result_->lane_instructions += chunk.lane_instructions;
    result_->sector_bytes += chunk.sectors * 32;
    if (result_->uninitialised_reads == 0) result_->first_uninitialised = chunk.first_uninitialised;
    result_->uninitialised_reads += chunk.uninitialised_reads;
    merger_.Add(*chunk.touches);
    uint64_t limit = launch_.config.max_warp_instructions;
    if (chunk.failure.status != ExecStatus::kOk) {
      result_->status = chunk.failure.status;
      result_->message = chunk.failure.message;
    } else if (limit != 0 && result_->warp_instructions > limit) {
      result_->status = ExecStatus::kInstructionLimit;
      result_->message = "kernel " + launch_.code->name + ": instruction limit reached";
    }
    bool failed = result_->status != ExecStatus::kOk;
    if (ends_wave || failed) merger_.EndWave();
    return !failed;
  }

 private:
  const Launch& launch_;
  ExecResult* result_;
  std::string* log_;
  WaveMerger merger_;
};

void Harvest(Worker* worker, ChunkResult* chunk) {
  chunk->log = std::move(worker->log);
  worker->log.clear();
  chunk->failure = std::move(worker->failure);
  worker->failure = Failure{};
  chunk->warp_instructions = worker->warp_instructions;
  chunk->lane_instructions = worker->lane_instructions;
  chunk->sectors = worker->sectors;
  worker->warp_instructions = worker->lane_instructions = worker->sectors = 0;
  chunk->uninitialised_reads = worker->uninitialised_reads;
  chunk->first_uninitialised = std::move(worker->first_uninitialised);
  worker->uninitialised_reads = 0;
  worker->first_uninitialised.clear();
}

// --- kernels whose blocks do not talk to each other ---

// Chunks never cross waves, and their size depends on the launch only: so does everything that is
// recorded.
class ParallelRun {
 public:
  ParallelRun(Launch* launch, Collector* collector) : launch_(launch), collector_(collector) {
    wave_ = launch->blocks_per_wave;
    chunk_ = std::clamp<uint64_t>(wave_ / 8, 1, kMaxChunk);
    per_wave_ = (wave_ + chunk_ - 1) / chunk_;
    uint64_t waves = (launch->blocks + wave_ - 1) / wave_;
    uint64_t tail = launch->blocks - (waves - 1) * wave_;
    chunks_ = (waves - 1) * per_wave_ + (tail + chunk_ - 1) / chunk_;
  }

  const RegionMap& regions() const { return regions_; }

  void Run() {
    unsigned helpers = static_cast<unsigned>(std::min<uint64_t>(ExecutionThreads(), chunks_)) - 1;
    if (launch_->blocks * launch_->threads < kSmallLaunch) helpers = 0;
    RunOnThreads(helpers, [this] { Work(); });
  }

 private:
  void Work() {
    DefaultFloatMode float_mode;
    Worker worker(launch_);
    if (launch_->config.max_warp_instructions != 0)
      worker.limit = launch_->config.max_warp_instructions;
    while (true) {
      uint64_t index = next_.fetch_add(1);
      if (index >= chunks_ || index > stop_after_.load()) break;
      ChunkResult chunk;
      chunk.touches = TakeTable();
      RunChunk(&worker, index, &chunk);
      Deliver(index, std::move(chunk));
    }
    std::lock_guard lock(mutex_);
    regions_.merge(worker.regions);
  }

  void RunChunk(Worker* worker, uint64_t index, ChunkResult* chunk) {
    uint64_t wave = index / per_wave_, first = wave * wave_ + index % per_wave_ * chunk_;
    uint64_t last = std::min({first + chunk_, (wave + 1) * wave_, launch_->blocks});
    worker->ForgetPages();
    for (uint64_t block = first; block < last; ++block) {
      BlockContext* context = worker->Start(block, chunk->touches.get());
      BlockState state = worker->Run(context, UINT64_MAX);
      worker->Finish(context);
      chunk->touches->EndBlock();
      if (state == BlockState::kFailed) break;
    }
    Harvest(worker, chunk);
  }

  std::unique_ptr<TouchTable> TakeTable() {
    std::lock_guard lock(mutex_);
    if (tables_.empty()) return std::make_unique<TouchTable>();
    std::unique_ptr<TouchTable> table = std::move(tables_.back());
    tables_.pop_back();
    return table;
  }

  void Deliver(uint64_t index, ChunkResult chunk) {
    std::lock_guard lock(mutex_);
    if (chunk.failure.status != ExecStatus::kOk) stop_after_ = std::min(stop_after_.load(), index);
    waiting_.emplace(index, std::move(chunk));
    for (auto it = waiting_.begin(); it != waiting_.end() && it->first == merged_;
         it = waiting_.erase(it)) {
      bool ends_wave = (merged_ + 1) % per_wave_ == 0 || merged_ + 1 == chunks_;
      ++merged_;
      if (failed_) continue;
      failed_ = !collector_->Add(it->second, ends_wave);
      if (failed_) stop_after_ = std::min(stop_after_.load(), merged_ - 1);
      it->second.touches->Clear();
      tables_.push_back(std::move(it->second.touches));
    }
  }

  Launch* launch_;
  Collector* collector_;
  uint64_t wave_, chunk_, per_wave_, chunks_;
  std::atomic<uint64_t> next_{0}, stop_after_{UINT64_MAX};
  std::mutex mutex_;
  std::map<uint64_t, ChunkResult> waiting_;
  std::vector<std::unique_ptr<TouchTable>> tables_;
  RegionMap regions_;
  uint64_t merged_ = 0;
  bool failed_ = false;
};

// --- kernels whose blocks may talk to each other ---

// One thread. A block runs to its end unless it takes long: then the next one is let in beside it,
// up to as many as the device would hold, and they take turns. So a block that waits for a later
// one sees it come, and the order is always the same.
class OrderedRun {
 public:
  OrderedRun(Launch* launch, Collector* collector)
      : launch_(launch), collector_(collector), worker_(launch) {
    resident_limit_ = launch->config.cooperative ? launch->blocks
                      : launch->config.blocks_per_wave != 0
                          ? launch->blocks_per_wave
                          : std::min(launch->blocks, kMaxResident);
    if (launch->config.max_warp_instructions != 0)
      worker_.limit = launch->config.max_warp_instructions;
  }

  const RegionMap& regions() const { return worker_.regions; }

  void Run() {
    DefaultFloatMode float_mode;
    bool failed = false;
    while (!failed && (next_ < launch_->blocks || !resident_.empty())) {
      do {
        if (next_ < launch_->blocks && resident_.size() < resident_limit_) Admit();
      } while (launch_->config.cooperative && next_ < launch_->blocks);
      failed = !Turn();
      if (!failed && !resident_.empty()) HandOver(resident_.front().wave);
    }
    HandOver(UINT64_MAX);
  }

 private:
  struct Resident {
    BlockContext* context;
    uint64_t wave;
  };

  // Waves before `end`, in order. Counters and failure belong to the launch: they go with the last.
  void HandOver(uint64_t end) {
    for (auto it = tables_.begin(); it != tables_.end() && it->first < end;
         it = tables_.erase(it)) {
      ChunkResult chunk;
      chunk.touches = std::move(it->second);
      if (end == UINT64_MAX && std::next(it) == tables_.end()) Harvest(&worker_, &chunk);
      collector_->Add(chunk, true);
    }
  }

  void Admit() {
    uint64_t wave = next_ / launch_->blocks_per_wave;
    std::unique_ptr<TouchTable>& table = tables_[wave];
    if (table == nullptr) table = std::make_unique<TouchTable>();
    resident_.push_back({worker_.Start(next_, table.get()), wave});
    ++next_;
  }

  bool Turn() {
    for (size_t k = 0; k < resident_.size();) {
      if (resident_[k].wave != current_wave_) {
        worker_.ForgetPages();
        current_wave_ = resident_[k].wave;
      }
      bool is_new = k + 1 == resident_.size();
      uint64_t turn = launch_->config.cooperative ? kGridTurn : is_new ? kFirstTurn : kTurn;
      BlockState state = worker_.Run(resident_[k].context, turn);
      // Blocks of a cooperative grid go through its phases together: they stay in that order.
      if (is_new && !launch_->config.cooperative) tables_[current_wave_]->EndBlock();
      if (state == BlockState::kFailed) {
        worker_.Finish(resident_[k].context);
        return false;
      }
      if (state == BlockState::kDone) {
        worker_.Finish(resident_[k].context);
        resident_.erase(resident_.begin() + static_cast<ptrdiff_t>(k));
      } else {
        ++k;
      }
    }
    return true;
  }

  Launch* launch_;
  Collector* collector_;
  Worker worker_;
  uint64_t next_ = 0, resident_limit_ = 1, current_wave_ = UINT64_MAX;
  std::vector<Resident> resident_;
  std::map<uint64_t, std::unique_ptr<TouchTable>> tables_;
};

template <class AnyRun>
void RunAs(Launch* launch, Collector* collector, std::vector<Region>* regions) {
  AnyRun run(launch, collector);
  run.Run();
  for (const auto& [begin, region] : run.regions()) regions->push_back(region);
}

}  // namespace

ExecResult RunLaunch(Launch* launch, std::string* log, std::vector<Region>* regions) {
  ExecResult result;
  Collector collector(*launch, &result, log);
  if (launch->code->ordered || launch->config.cooperative) {
    RunAs<OrderedRun>(launch, &collector, regions);
  } else {
    RunAs<ParallelRun>(launch, &collector, regions);
  }
  return result;
}

}  // namespace atp::sim::exec
