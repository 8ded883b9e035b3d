// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_driver.h"

#include <dlfcn.h>

#include <cstddef>
#include <type_traits>

#include "cli/error.h"

namespace atp::cli {
namespace {

constexpr int kSuccess = 0;
constexpr int kHostDevice = -1;               // CU_DEVICE_CPU
constexpr unsigned kAttachGlobal = 1;         // CU_MEM_ATTACH_GLOBAL
constexpr unsigned kNonBlocking = 1;          // CU_STREAM_NON_BLOCKING
constexpr int kConcurrentManagedAccess = 89;  // CUdevice_attribute

constexpr unsigned kThreads = 1024;  // more than fault, so that none of them has to wait for others

// Touch: thread t of the one block reads from page t % pages of range t / pages. Chase: one thread,
// each of whose reads has to wait for the one before.
constexpr char kKernels[] = R"(.version 7.0
.target sm_50
.address_size 64
.visible .entry Touch(.param .u64 address, .param .u64 apart, .param .u64 stride, .param .u32 pages, .param .u32 all)
{
  .reg .pred %none;
  .reg .b32 %thread, %pages, %all, %range, %page, %read;
  .reg .b64 %at, %step, %wide;
  mov.u32 %thread, %tid.x;
  ld.param.u32 %pages, [pages];
  ld.param.u32 %all, [all];
  setp.ge.u32 %none, %thread, %all;
  @%none ret;
  div.u32 %range, %thread, %pages;
  rem.u32 %page, %thread, %pages;
  ld.param.u64 %at, [address];
  ld.param.u64 %step, [apart];
  cvt.u64.u32 %wide, %range;
  mad.lo.u64 %at, %wide, %step, %at;
  ld.param.u64 %step, [stride];
  cvt.u64.u32 %wide, %page;
  mad.lo.u64 %at, %wide, %step, %at;
  ld.volatile.global.u32 %read, [%at];
  ret;
}
.visible .entry Chase(.param .u64 address, .param .u64 stride, .param .u32 count)
{
  .reg .pred %more;
  .reg .b32 %left, %zero;
  .reg .b64 %at, %step, %wide;
  ld.param.u64 %at, [address];
  ld.param.u64 %step, [stride];
  ld.param.u32 %left, [count];
Next:
  ld.volatile.global.u32 %zero, [%at];
  cvt.u64.u32 %wide, %zero;
  add.u64 %at, %at, %step;
  add.u64 %at, %at, %wide;
  sub.u32 %left, %left, 1;
  setp.ne.u32 %more, %left, 0;
  @%more bra Next;
  ret;
}
)";

}  // namespace

struct CalibrationDriver::Calls {
  int (*init)(unsigned);
  int (*version)(int*);
  int (*get)(int*, int);
  int (*name)(char*, int, int);
  int (*total)(size_t*, int);
  int (*attribute)(int*, int, int);
  int (*retain)(void**, int);
  int (*release)(int);
  int (*set_current)(void*);
  int (*info)(size_t*, size_t*);
  int (*alloc)(DeviceAddress*, size_t);
  int (*alloc_managed)(DeviceAddress*, size_t, unsigned);
  int (*free)(DeviceAddress);
  int (*set)(DeviceAddress, unsigned char, size_t);
  int (*alloc_host)(void**, size_t, unsigned);
  int (*free_host)(void*);
  int (*to_device)(DeviceAddress, const void*, size_t, DriverStream*);
  int (*to_host)(void*, DeviceAddress, size_t, DriverStream*);
  int (*prefetch)(DeviceAddress, size_t, int, DriverStream*);
  int (*create_stream)(DriverStream**, unsigned);
  int (*create_event)(DriverEvent**, unsigned);
  int (*record)(DriverEvent*, DriverStream*);
  int (*wait)(DriverEvent*);
  int (*elapsed)(float*, DriverEvent*, DriverEvent*);
  int (*synchronize)();
  int (*load)(void**, const void*);
  int (*function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                DriverStream*, void**, void**);

  // Exported names, with the version that has these parameters.
  explicit Calls(void* library) {
    const auto find = [&](const char* call, auto* to) {
      *to = reinterpret_cast<std::remove_pointer_t<decltype(to)>>(dlsym(library, call));
      if (*to == nullptr) throw CommandError(1, std::string("the driver has no ") + call);
    };
    find("cuInit", &init);
    find("cuDriverGetVersion", &version);
    find("cuDeviceGet", &get);
    find("cuDeviceGetName", &name);
    find("cuDeviceTotalMem_v2", &total);
    find("cuDeviceGetAttribute", &attribute);
    find("cuDevicePrimaryCtxRetain", &retain);
    find("cuDevicePrimaryCtxRelease_v2", &release);
    find("cuCtxSetCurrent", &set_current);
    find("cuMemGetInfo_v2", &info);
    find("cuMemAlloc_v2", &alloc);
    find("cuMemAllocManaged", &alloc_managed);
    find("cuMemFree_v2", &free);
    find("cuMemsetD8_v2", &set);
    find("cuMemHostAlloc", &alloc_host);
    find("cuMemFreeHost", &free_host);
    find("cuMemcpyHtoDAsync_v2", &to_device);
    find("cuMemcpyDtoHAsync_v2", &to_host);
    find("cuMemPrefetchAsync", &prefetch);
    find("cuStreamCreate", &create_stream);
    find("cuEventCreate", &create_event);
    find("cuEventRecord", &record);
    find("cuEventSynchronize", &wait);
    find("cuEventElapsedTime", &elapsed);
    find("cuCtxSynchronize", &synchronize);
    find("cuModuleLoadData", &load);
    find("cuModuleGetFunction", &function);
    find("cuLaunchKernel", &launch);
  }
};

CalibrationDriver::CalibrationDriver(const std::string& library, int device) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw CommandError(1, std::string("no CUDA driver: ") + dlerror());
  calls_ = new Calls(handle);
  Check(calls_->init(0), "cuInit");
  Check(calls_->version(&version_), "cuDriverGetVersion");
  Check(calls_->get(&device_, device), "cuDeviceGet");
  char name[256] = {};
  Check(calls_->name(name, sizeof name - 1, device_), "cuDeviceGetName");
  name_ = name;
  size_t total = 0;
  Check(calls_->total(&total, device_), "cuDeviceTotalMem");
  total_ = total;
  int concurrent = 0;
  Check(calls_->attribute(&concurrent, kConcurrentManagedAccess, device_), "cuDeviceGetAttribute");
  concurrent_ = concurrent != 0;
  void *context = nullptr, *module = nullptr;
  Check(calls_->retain(&context, device_), "cuDevicePrimaryCtxRetain");
  Check(calls_->set_current(context), "cuCtxSetCurrent");
  Check(calls_->load(&module, kKernels), "cuModuleLoadData");
  Check(calls_->function(&touch_, module, "Touch"), "cuModuleGetFunction");
  Check(calls_->function(&chase_, module, "Chase"), "cuModuleGetFunction");
  for (DriverStream*& s : streams_)
    Check(calls_->create_stream(&s, kNonBlocking), "cuStreamCreate");
  for (DriverEvent*& e : events_) Check(calls_->create_event(&e, 0), "cuEventCreate");
}

// Streams, events and module end with the context.
CalibrationDriver::~CalibrationDriver() {
  calls_->release(device_);
  delete calls_;
}

void CalibrationDriver::Check(int result, const char* call) const {
  if (result == kSuccess) return;
  throw CommandError(1, std::string(call) + " answers error " + std::to_string(result));
}

uint64_t CalibrationDriver::FreeBytes() {
  size_t free = 0, total = 0;
  Check(calls_->info(&free, &total), "cuMemGetInfo");
  return free;
}

DeviceAddress CalibrationDriver::Allocate(uint64_t bytes) {
  DeviceAddress address = 0;
  Check(calls_->alloc(&address, bytes), "cuMemAlloc");
  return address;
}

DeviceAddress CalibrationDriver::AllocateManaged(uint64_t bytes) {
  DeviceAddress address = 0;
  Check(calls_->alloc_managed(&address, bytes, kAttachGlobal), "cuMemAllocManaged");
  return address;
}

void* CalibrationDriver::AllocateHost(uint64_t bytes) {
  void* address = nullptr;
  Check(calls_->alloc_host(&address, bytes, 0), "cuMemHostAlloc");
  return address;
}

void CalibrationDriver::Free(DeviceAddress address) { Check(calls_->free(address), "cuMemFree"); }

void CalibrationDriver::FreeHost(void* address) {
  Check(calls_->free_host(address), "cuMemFreeHost");
}

void CalibrationDriver::CopyToDevice(DeviceAddress to, const void* from, uint64_t bytes,
                                     Stream stream) {
  Check(calls_->to_device(to, from, bytes, Of(stream)), "cuMemcpyHtoDAsync");
}

void CalibrationDriver::CopyToHost(void* to, DeviceAddress from, uint64_t bytes, Stream stream) {
  Check(calls_->to_host(to, from, bytes, Of(stream)), "cuMemcpyDtoHAsync");
}

void CalibrationDriver::Prefetch(DeviceAddress address, uint64_t bytes, Place place,
                                 Stream stream) {
  const int to = place == Place::kDevice ? device_ : kHostDevice;
  Check(calls_->prefetch(address, bytes, to, Of(stream)), "cuMemPrefetchAsync");
}

void CalibrationDriver::Touch(DeviceAddress address, uint32_t ranges, uint64_t apart,
                              uint32_t pages, uint64_t stride) {
  uint32_t all = ranges * pages;
  void* arguments[] = {&address, &apart, &stride, &pages, &all};
  Check(calls_->launch(touch_, 1, 1, 1, kThreads, 1, 1, 0, streams_[0], arguments, nullptr),
        "cuLaunchKernel");
}

void CalibrationDriver::Chase(DeviceAddress address, uint32_t count, uint64_t stride) {
  void* arguments[] = {&address, &stride, &count};
  Check(calls_->launch(chase_, 1, 1, 1, 1, 1, 1, 0, streams_[0], arguments, nullptr),
        "cuLaunchKernel");
}

void CalibrationDriver::Zero(DeviceAddress address, uint64_t bytes) {
  Check(calls_->set(address, 0, bytes), "cuMemsetD8");
}

void CalibrationDriver::Synchronize() { Check(calls_->synchronize(), "cuCtxSynchronize"); }

double CalibrationDriver::Time(Stream stream, const std::function<void()>& work) {
  Check(calls_->record(events_[0], Of(stream)), "cuEventRecord");
  work();
  Check(calls_->record(events_[1], Of(stream)), "cuEventRecord");
  Check(calls_->wait(events_[1]), "cuEventSynchronize");
  float milliseconds = 0;
  Check(calls_->elapsed(&milliseconds, events_[0], events_[1]), "cuEventElapsedTime");
  Synchronize();
  return static_cast<double>(milliseconds) / 1e3;
}

}  // namespace atp::cli
