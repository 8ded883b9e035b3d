// SPDX-License-Identifier: Apache-2.0
// The part of purity.h that is about one launch: runs what addresses and branches are made of, for
// all threads, and keeps account of every byte that is read and written. For purity.cc only.
#pragma once

#include <utility>

#include "ptx/purity.h"
#include "ptx/thread_row.h"

namespace atp::ptx {

// The bytes that were written through one pointer.
class Written {
 public:
  // `count` pieces of `bytes`, `step` apart. False: too many to keep account of.
  bool Add(int64_t begin, int64_t step, uint64_t count, int64_t bytes);
  // Whether they are one range, each byte of which was written once. Null: yes.
  const char* Range(int64_t* begin, int64_t* end);

 private:
  bool AddOne(int64_t begin, int64_t end);
  std::vector<std::pair<int64_t, int64_t>> pieces_;  // begin, end; sorted by Range
};

class PurityRun {
 public:
  PurityRun(const ReachCode& code, const Geometry& geometry, std::span<const char> parameters,
            std::span<const uint32_t> pointers, uint64_t budget);
  LaunchProof Run();

 private:
  struct Row {  // threads `first` and so on, which differ in x
    uint32_t first = 0, count = 1;
  };
  struct Touch {
    size_t pointer = 0;
    int64_t begin = 0, step = 0, bytes = 0;
    bool stores = false;
  };
  enum class Outcome : uint8_t { kDone, kSplit, kFailed };

  bool RunBlock();
  bool RunRow(Row row);
  void SetThreads(const Row& row);
  Outcome RunThreads(uint32_t count);
  Outcome Do(const ReachStep& step, bool certain, uint32_t count);
  Outcome LoadParameter(const ReachStep& step);
  Outcome AddTouch(const ReachStep& step, bool certain);
  bool Commit(uint32_t count);
  RowValue Read(uint32_t reg) const;
  void Set(uint32_t reg, const RowValue& value);
  RowValue& Special(uint32_t which);
  Outcome Fail(const char* why);

  const ReachCode& code_;
  const Geometry& geometry_;
  const std::span<const char> parameters_;
  const std::span<const uint32_t> pointers_;
  const uint64_t budget_;
  LaunchProof proof_;
  std::vector<Written> written_;  // by pointer
  std::vector<RowValue> values_;  // of registers
  std::vector<uint64_t> set_in_;  // the run in which each got its value: others know none
  std::vector<Touch> touches_;    // of the run
  uint64_t run_ = 0;
  uint32_t thread_[3] = {0, 0, 0};  // y and z of the row
};

}  // namespace atp::ptx
