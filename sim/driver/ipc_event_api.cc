// SPDX-License-Identifier: Apache-2.0
// Events between processes.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/process_file.h"
#include "sim/driver/shared_event.h"

namespace atp::sim {
namespace {

constexpr char kMagic[16] = "ATP sim event";
constexpr uint64_t kPage = 4096;

}  // namespace

SharedEvent::Page* SharedEvent::Map(int file) {
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<Page*>(page);
}

std::shared_ptr<SharedEvent> SharedEvent::Create() {
  const int file = memfd_create("atp-sim-event", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  Page* const page = ftruncate(file, kPage) == 0 ? Map(file) : nullptr;
  if (!page) {
    close(file);
    return nullptr;
  }
  std::memcpy(page->magic, kMagic, sizeof kMagic);
  return std::shared_ptr<SharedEvent>(new SharedEvent(file, page));
}

std::shared_ptr<SharedEvent> SharedEvent::Open(int file) {
  struct stat status {};
  Page* const page = fstat(file, &status) == 0 && status.st_size == static_cast<off_t>(kPage)
                         ? Map(file)
                         : nullptr;
  if (page && std::memcmp(page->magic, kMagic, sizeof kMagic) == 0)
    return std::shared_ptr<SharedEvent>(new SharedEvent(file, page));
  if (page) munmap(page, kPage);
  close(file);
  return nullptr;
}

SharedEvent::~SharedEvent() {
  munmap(page_, kPage);
  close(file_);
}

void SharedEvent::Finish(uint64_t recording) {
  uint64_t done = page_->done.load();
  while (done < recording && !page_->done.compare_exchange_weak(done, recording)) {
  }
}

}  // namespace atp::sim

ATP_API cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  ATP_CALL(kNeedsContext, cost::kCall);
  const Event* event = call.driver.events.Get(event_handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (!handle || !event->shared) return CUDA_ERROR_INVALID_VALUE;
  const ProcessFile file = ProcessFile::OfThisProcess(event->shared->file());
  static_assert(sizeof file <= sizeof *handle);
  *handle = {};
  std::memcpy(handle->reserved, &file, sizeof file);
  return CUDA_SUCCESS;
}

ATP_API cuIpcOpenEventHandle(CUevent* out, CUipcEventHandle handle) {
  ATP_CALL(kNeedsContext, cost::kEvent);
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  ProcessFile file;
  std::memcpy(&file, handle.reserved, sizeof file);
  const int opened = file.Open();
  std::shared_ptr<SharedEvent> shared = opened < 0 ? nullptr : SharedEvent::Open(opened);
  if (!shared) return CUDA_ERROR_INVALID_VALUE;
  Event* event = NewEvent(call, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
  event->shared = std::move(shared);
  *out = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}
