// SPDX-License-Identifier: Apache-2.0
// Asks a driver what no document says of unified memory, as far as a few hundred MiB of free memory
// allow: what a prefetch call costs on idle and on busy streams, what it does to a capture, what
// free memory counts, how fast a kernel reads what is resident, mapped, or comes by faults, and
// what a copy from memory on the host does. For a real driver; on the simulated machine it runs,
// and its times mean nothing.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "bench/gpu/gpu.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kWork = 16 * kMiB;  // set again and again, to keep a stream busy

// out[0] gets what is read only if it is a number that nobody writes, so that the reads stay.
constexpr char kRead[] = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .entry Read(.param .u64 from, .param .u64 count, .param .u64 out) {
  .reg .b64 %d<8>; .reg .b32 %r<12>; .reg .pred %p<3>;
  ld.param.u64 %d0, [from]; ld.param.u64 %d1, [count]; ld.param.u64 %d2, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r1, %r2, %r0; mul.lo.u32 %r5, %r2, %r3;
  cvt.u64.u32 %d3, %r4; cvt.u64.u32 %d4, %r5; mov.u32 %r6, 0;
LOOP:
  setp.ge.u64 %p0, %d3, %d1; @%p0 bra DONE;
  shl.b64 %d5, %d3, 4; add.u64 %d6, %d0, %d5;
  ld.global.v4.u32 {%r7, %r8, %r9, %r10}, [%d6];
  xor.b32 %r6, %r6, %r7; xor.b32 %r6, %r6, %r10;
  add.u64 %d3, %d3, %d4; bra LOOP;
DONE:
  setp.ne.u32 %p1, %r6, 0x12345678; @%p1 bra END;
  st.global.u32 [%d2], %r6;
END:
  ret;
}
)";

class Questions {
 public:
  explicit Questions(bool quick) : rounds_(quick ? 3 : 15) {
    CUmodule module;
    CHECK(cuModuleLoadData(&module, kRead));
    CHECK(cuModuleGetFunction(&read_, module, "Read"));
    CHECK(cuMemAlloc(&out_, kWork));
    CHECK(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&begin_, CU_EVENT_DEFAULT));
    CHECK(cuEventCreate(&end_, CU_EVENT_DEFAULT));
    size_t free = 0, total = 0;
    CHECK(cuMemGetInfo(&free, &total));
    bytes_ = std::min(256 * kMiB, free / 8 / (2 * kMiB) * (2 * kMiB));
    CHECK(cuMemAllocManaged(&memory_, bytes_, CU_MEM_ATTACH_GLOBAL));
    CHECK(cuMemsetD8Async(memory_, 1, bytes_, gpu_.stream));
    CHECK(cuStreamSynchronize(gpu_.stream));
  }
  ~Questions() {
    CHECK(cuMemFree(memory_));
    CHECK(cuMemFree(out_));
  }

  Json Answer() {
    return {{"bytes", bytes_},
            {"discard", Resolves("cuMemDiscardBatchAsync")},
            {"prefetch_batch", Resolves("cuMemPrefetchBatchAsync")},
            {"prefetch_call", PrefetchCalls()},
            {"free_memory", FreeMemory()},
            {"capture", Captures()},
            {"read_gb_per_s", Reads()},
            {"copy_from_host_pages", CopyFromHostPages()}};
  }

 private:
  static bool Resolves(const char* name) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status;
    const CUresult result = cuGetProcAddress(name, &function, 13000, 0, &status);
    return result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS;
  }

  void PutOn(bool device) {
    Prefetch(memory_, bytes_, device, gpu_.stream);
    CHECK(cuStreamSynchronize(gpu_.stream));
  }

  void StartRead(CUstream stream, size_t bytes) {
    CUdeviceptr from = memory_;
    uint64_t count = bytes / 16;
    void* arguments[] = {&from, &count, &out_};
    CHECK(cuLaunchKernel(read_, 256, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr));
  }

  // What the call itself takes of the calling thread, in microseconds, behind work of its stream or
  // on an idle one.
  double PrefetchUs(size_t bytes, bool to_device, bool busy) {
    std::vector<double> us;
    for (int i = 0; i < rounds_; ++i) {
      PutOn(!to_device);
      if (busy) {
        for (int k = 0; k < 64; ++k) CHECK(cuMemsetD8Async(out_, 1, kWork, other_));
      }
      const double begin = NowUs();
      Prefetch(memory_, bytes, to_device, busy ? other_ : gpu_.stream);
      us.push_back(NowUs() - begin);
      CHECK(cuCtxSynchronize());
    }
    return Middle(us);
  }

  Json PrefetchCalls() {
    Json rows = Json::array();
    for (const size_t bytes : {2 * kMiB, 64 * kMiB, bytes_}) {
      if (bytes > bytes_) continue;
      for (const bool to_device : {true, false}) {
        for (const bool busy : {false, true}) {
          rows.push_back({{"bytes", bytes},
                          {"to", to_device ? "device" : "host"},
                          {"stream", busy ? "busy" : "idle"},
                          {"call_us", PrefetchUs(bytes, to_device, busy)}});
        }
      }
    }
    return rows;
  }

  // What cuMemGetInfo calls free while managed memory is on the host, and on the device.
  Json FreeMemory() {
    const auto free = [] {
      size_t bytes = 0, total = 0;
      CHECK(cuMemGetInfo(&bytes, &total));
      return bytes;
    };
    PutOn(false);
    const size_t before = free();
    PutOn(true);
    return {{"on_host", before}, {"on_device", free()}};
  }

  // A prefetch by another thread, on a stream of its own, while this one captures; and into the
  // capturing stream itself.
  Json Captures() {
    const std::pair<const char*, CUstreamCaptureMode> modes[] = {
        {"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
        {"thread_local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED}};
    Json answers;
    for (const auto& [name, mode] : modes) {
      for (const bool inside : {false, true}) {
        CUresult call = CUDA_SUCCESS;
        CUgraph graph = nullptr;
        CHECK(cuStreamBeginCapture(gpu_.stream, mode));
        const auto prefetch = [&] {
          cuCtxSetCurrent(gpu_.context);
          CUmemLocation host = {};
          host.type = CU_MEM_LOCATION_TYPE_HOST;
          call = cuMemPrefetchAsync(memory_, 2 * kMiB, host, 0, inside ? gpu_.stream : other_);
        };
        if (inside) {
          prefetch();
        } else {
          std::thread(prefetch).join();
        }
        const CUresult end = cuStreamEndCapture(gpu_.stream, &graph);
        if (graph != nullptr) cuGraphDestroy(graph);
        answers[name][inside ? "into_the_captured_stream" : "by_another_thread"] = {
            {"call", NameOf(call)}, {"end_of_capture", NameOf(end)}};
        CHECK(cuCtxSynchronize());
      }
    }
    return answers;
  }

  double ReadRate() {
    CHECK(cuEventRecord(begin_, gpu_.stream));
    StartRead(gpu_.stream, bytes_);
    CHECK(cuEventRecord(end_, gpu_.stream));
    CHECK(cuStreamSynchronize(gpu_.stream));
    float ms = 0;
    CHECK(cuEventElapsedTime(&ms, begin_, end_));
    return static_cast<double>(bytes_) / ms * 1e-6;
  }

  void Advise(CUmem_advise advice, CUmemLocationType type) {
    CUmemLocation where = {};
    where.type = type;
    where.id = type == CU_MEM_LOCATION_TYPE_DEVICE ? gpu_.device : 0;
    CHECK(cuMemAdvise(memory_, bytes_, advice, where));
  }

  // By a kernel: from device memory, by faults, and over the link without moving: how often it may
  // come back for the same pages before they move is told by the second time.
  Json Reads() {
    std::vector<double> resident, faults, mapped, again;
    for (int i = 0; i < rounds_; ++i) {
      PutOn(true);
      resident.push_back(ReadRate());
      PutOn(false);
      faults.push_back(ReadRate());
      PutOn(false);
      Advise(CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_MEM_LOCATION_TYPE_HOST);
      Advise(CU_MEM_ADVISE_SET_ACCESSED_BY, CU_MEM_LOCATION_TYPE_DEVICE);
      mapped.push_back(ReadRate());
      again.push_back(ReadRate());
      Advise(CU_MEM_ADVISE_UNSET_ACCESSED_BY, CU_MEM_LOCATION_TYPE_DEVICE);
      Advise(CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, CU_MEM_LOCATION_TYPE_HOST);
    }
    return {{"resident", Middle(resident)},
            {"by_faults", Middle(faults)},
            {"mapped", Middle(mapped)},
            {"mapped_again", Middle(again)}};
  }

  // Half of the memory is copied to the other half while it lies on the host: what the call takes,
  // what the copy takes, and what it takes when done again.
  Json CopyFromHostPages() {
    std::vector<double> call, first, second;
    const auto copy = [&](std::vector<double>* whole, std::vector<double>* submit) {
      const double begin = NowUs();
      CHECK(cuMemcpyDtoDAsync(memory_, memory_ + bytes_ / 2, bytes_ / 2, gpu_.stream));
      if (submit != nullptr) submit->push_back(NowUs() - begin);
      CHECK(cuStreamSynchronize(gpu_.stream));
      whole->push_back(NowUs() - begin);
    };
    for (int i = 0; i < rounds_; ++i) {
      PutOn(true);
      Prefetch(memory_ + bytes_ / 2, bytes_ / 2, false, gpu_.stream);
      CHECK(cuStreamSynchronize(gpu_.stream));
      copy(&first, &call);
      copy(&second, nullptr);
    }
    return {{"copied_bytes", bytes_ / 2},
            {"call_us", Middle(call)},
            {"first_us", Middle(first)},
            {"again_us", Middle(second)}};
  }

  const Gpu gpu_;
  const int rounds_;
  CUfunction read_;
  CUstream other_;
  CUevent begin_, end_;
  CUdeviceptr memory_ = 0, out_ = 0;
  size_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  bool json = false, quick = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (strcmp(argv[i], "--quick") == 0) {
      quick = true;
    } else {
      const bool help = strcmp(argv[i], "--help") == 0;
      fprintf(help ? stdout : stderr,
              "usage: gpu_questions [--json] [--quick]\nWhat a driver does with unified memory. "
              "Uses an eighth of the free device memory, at most 256 MiB.\n"
              "Exit codes: 0 answered, 1 the driver failed, 2 usage.\n");
      return help ? 0 : 2;
    }
  }
  const Json answers = Questions(quick).Answer();
  printf("%s\n", answers.dump(json ? -1 : 2).c_str());
  return 0;
}
