// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Ipc : public DriverTest {};

TEST_F(Ipc, AHandleNamesTheWholeAllocationAndIsNotForTheExporterItself) {
  const CUdeviceptr memory = Alloc(1000);
  CUipcMemHandle first, inside;
  ASSERT_CUDA(cuIpcGetMemHandle(&first, memory));
  ASSERT_CUDA(cuIpcGetMemHandle(&inside, memory + 500));
  EXPECT_EQ(std::memcmp(&first, &inside, sizeof first), 0);
  CUdeviceptr opened = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_CONTEXT,
                cuIpcOpenMemHandle(&opened, first, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenMemHandle(&opened, first, 0));
  CUipcMemHandle nonsense{};
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuIpcOpenMemHandle(&opened, nonsense, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(memory));
}

TEST_F(Ipc, ManagedAndHostMemoryIsRefused) {
  CUipcMemHandle handle;
  void* pinned = nullptr;
  ASSERT_CUDA(cuMemAllocHost(&pinned, 64));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuIpcGetMemHandle(&handle, AllocManaged(64)));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(pinned)));
}

struct Card {
  CUcontext context = nullptr;
  CUfunction fill = nullptr, increment = nullptr;
  bool Open() {
    CUmodule module = nullptr;
    return cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS &&
           cuModuleLoad(&module, ATP_TEST_PTX) == CUDA_SUCCESS &&
           cuModuleGetFunction(&fill, module, "Fill") == CUDA_SUCCESS &&
           cuModuleGetFunction(&increment, module, "Increment") == CUDA_SUCCESS;
  }
};

constexpr int kCount = 1000;
constexpr uint64_t kSkew = 512;  // the piece does not start on a page

// Exports an array of 5, waits for the other process, looks at what it did. The exit code tells.
[[noreturn]] void Export(int to_importer, int from_importer) {
  Card card;
  CUdeviceptr before = 0, memory = 0;
  CUipcMemHandle handle;
  int count = kCount, value = 5, last = 0;
  char done = 0;
  if (!card.Open() || cuMemAlloc(&before, kSkew) != CUDA_SUCCESS) _exit(10);
  if (cuMemAlloc(&memory, kCount * sizeof(int)) != CUDA_SUCCESS) _exit(11);
  void* arguments[] = {&memory, &value, &count};
  if (cuLaunchKernel(card.fill, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr) != CUDA_SUCCESS)
    _exit(12);
  if (cuCtxSynchronize() != CUDA_SUCCESS || cuIpcGetMemHandle(&handle, memory) != CUDA_SUCCESS)
    _exit(13);
  if (write(to_importer, &handle, sizeof handle) != sizeof handle) _exit(14);
  if (read(from_importer, &done, 1) != 1) _exit(15);
  if (cuMemcpyDtoH(&last, memory + 4 * (kCount - 1), 4) != CUDA_SUCCESS) _exit(16);
  _exit(last == 6 ? 0 : 17);
}

TEST(IpcBetweenProcesses, KernelsOfBothWorkOnTheSameBytes) {
  RunWith({}, [] {
    int to_importer[2], from_importer[2];
    ASSERT_EQ(pipe(to_importer), 0);
    ASSERT_EQ(pipe(from_importer), 0);
    const pid_t exporter = fork();  // before the driver is there in either
    if (exporter == 0) Export(to_importer[1], from_importer[0]);
    CUipcMemHandle handle;
    ASSERT_EQ(read(to_importer[0], &handle, sizeof handle), ssize_t{sizeof handle});
    Card card;
    ASSERT_TRUE(card.Open());
    size_t free_before = 0, free_after = 0, total = 0;
    ASSERT_CUDA(cuMemGetInfo(&free_before, &total));
    CUdeviceptr memory = 0, again = 0;
    ASSERT_CUDA(cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    ASSERT_CUDA(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    EXPECT_EQ(memory, again);
    ASSERT_CUDA(cuMemGetInfo(&free_after, &total));
    EXPECT_EQ(free_before, free_after);
    int count = kCount, first = 0;
    void* arguments[] = {&memory, &count};
    ASSERT_CUDA(cuLaunchKernel(card.increment, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
    ASSERT_CUDA(cuMemcpyDtoH(&first, memory, sizeof first));
    EXPECT_EQ(first, 6);
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemFree(memory));
    ASSERT_CUDA(cuIpcCloseMemHandle(memory));
    ASSERT_CUDA(cuMemcpyDtoH(&first, memory, sizeof first)) << "opened twice, closed once";
    ASSERT_CUDA(cuIpcCloseMemHandle(memory));
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&first, memory, sizeof first));
    ASSERT_EQ(write(from_importer[1], "x", 1), 1);
    int status = -1;
    ASSERT_EQ(waitpid(exporter, &status, 0), exporter);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    CUdeviceptr late = 0;
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                  cuIpcOpenMemHandle(&late, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
        << "the exporter has ended";
  });
}

TEST_F(Ipc, OnlyEventsMadeForItHaveHandles) {
  CUipcEventHandle handle;
  CUevent event = nullptr;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&event, CU_EVENT_INTERPROCESS));
  ASSERT_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuIpcGetEventHandle(&handle, event));
  const CUipcEventHandle nonsense{};
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuIpcOpenEventHandle(&event, nonsense));
}

// A stream of the exporter is held up by a value in memory, and the event behind it.
[[noreturn]] void ExportEvent(int to_importer, int from_importer) {
  Card card;
  CUevent event = nullptr;
  CUipcEventHandle handle;
  CUstream stream = nullptr;
  CUdeviceptr flag = 0;
  char go = 0;
  if (!card.Open() || cuMemAlloc(&flag, 4) != CUDA_SUCCESS ||
      cuMemsetD32(flag, 0, 1) != CUDA_SUCCESS ||
      cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
    _exit(10);
  if (cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS ||
      cuIpcGetEventHandle(&handle, event) != CUDA_SUCCESS)
    _exit(11);
  if (cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ) != CUDA_SUCCESS ||
      cuEventRecord(event, stream) != CUDA_SUCCESS)
    _exit(12);
  if (write(to_importer, &handle, sizeof handle) != sizeof handle) _exit(13);
  if (read(from_importer, &go, 1) != 1) _exit(14);
  if (cuStreamWriteValue32(nullptr, flag, 1, 0) != CUDA_SUCCESS) _exit(15);
  if (cuEventSynchronize(event) != CUDA_SUCCESS) _exit(16);
  if (read(from_importer, &go, 1) != 1) _exit(17);  // stays until the other has seen it
  _exit(0);
}

TEST(IpcBetweenProcesses, AnEventOfOneHoldsUpAStreamOfTheOther) {
  RunWith({}, [] {
    int to_importer[2], from_importer[2];
    ASSERT_EQ(pipe(to_importer), 0);
    ASSERT_EQ(pipe(from_importer), 0);
    const pid_t exporter = fork();
    if (exporter == 0) ExportEvent(to_importer[1], from_importer[0]);
    CUipcEventHandle handle;
    ASSERT_EQ(read(to_importer[0], &handle, sizeof handle), ssize_t{sizeof handle});
    Card card;
    ASSERT_TRUE(card.Open());
    CUevent event = nullptr;
    CUstream stream = nullptr;
    ASSERT_CUDA(cuIpcOpenEventHandle(&event, handle));
    ASSERT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuEventQuery(event));
    CUdeviceptr memory = 0;
    ASSERT_CUDA(cuMemAlloc(&memory, 4));
    ASSERT_CUDA(cuStreamWaitEvent(stream, event, 0));
    ASSERT_CUDA(cuMemsetD32Async(memory, 5, 1, stream));
    EXPECT_RESULT(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    ASSERT_EQ(write(from_importer[1], "x", 1), 1);
    ASSERT_CUDA(cuEventSynchronize(event));
    ASSERT_CUDA(cuStreamSynchronize(stream));
    EXPECT_CUDA(cuEventQuery(event));
    int value = 0;
    ASSERT_CUDA(cuMemcpyDtoH(&value, memory, 4));
    EXPECT_EQ(value, 5);
    ASSERT_EQ(write(from_importer[1], "x", 1), 1);
    int status = -1;
    ASSERT_EQ(waitpid(exporter, &status, 0), exporter);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    ASSERT_CUDA(cuEventDestroy(event));
  });
}

}  // namespace
}  // namespace atp::sim
