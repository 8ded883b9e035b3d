// SPDX-License-Identifier: Apache-2.0
// What processes share of an interprocess event: how often it has been recorded, and up to which
// recording the work before it has run. It lies in a page of a memory file that the importer opens
// through /proc, like memory (ipc_api.cc). Virtual time is not shared: to the importer a recording
// whose work has run is over. Under each process's driver lock; the counters are shared.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace atp::sim {

class SharedEvent {
 public:
  static std::shared_ptr<SharedEvent> Create();        // null when there is no memory
  static std::shared_ptr<SharedEvent> Open(int file);  // takes the descriptor; null: not one
  ~SharedEvent();
  SharedEvent(const SharedEvent&) = delete;
  SharedEvent& operator=(const SharedEvent&) = delete;

  int file() const { return file_; }
  uint64_t Record() { return page_->recorded.fetch_add(1) + 1; }
  void Finish(uint64_t recording);
  uint64_t Latest() const { return page_->recorded.load(); }
  bool IsDone(uint64_t recording) const { return page_->done.load() >= recording; }

 private:
  struct Page {
    char magic[16];
    std::atomic<uint64_t> recorded, done;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
  SharedEvent(int file, Page* page) : file_(file), page_(page) {}
  static Page* Map(int file);

  const int file_;
  Page* const page_;
};

}  // namespace atp::sim
