// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class SharedMemory : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    prop_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop_.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    prop_.requestedHandleTypes = kFile;
    ASSERT_CUDA(cuMemGetAllocationGranularity(&granule_, &prop_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  }
  CUdeviceptr Map(CUmemGenericAllocationHandle handle) {
    CUdeviceptr address = 0;
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CUDA(cuMemAddressReserve(&address, granule_, 0, 0, 0));
    EXPECT_CUDA(cuMemMap(address, granule_, 0, handle, 0));
    EXPECT_CUDA(cuMemSetAccess(address, granule_, &access, 1));
    return address;
  }
  void Unmap(CUdeviceptr address) {
    EXPECT_CUDA(cuMemUnmap(address, granule_));
    EXPECT_CUDA(cuMemAddressFree(address, granule_));
  }
  static void* AsHandle(int fd) { return reinterpret_cast<void*>(static_cast<intptr_t>(fd)); }

  static constexpr CUmemAllocationHandleType kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAllocationProp prop_{};
  size_t granule_ = 0;
};

TEST_F(SharedMemory, ADescriptorBringsBackTheSameMemory) {
  int supported = 0, fd = -1;
  ASSERT_CUDA(cuDeviceGetAttribute(
      &supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device_));
  EXPECT_EQ(supported, 1);
  CUmemGenericAllocationHandle made = 0, imported = 0;
  ASSERT_CUDA(cuMemCreate(&made, granule_, &prop_, 0));
  ASSERT_CUDA(cuMemExportToShareableHandle(&fd, made, kFile, 0));
  ASSERT_CUDA(cuMemImportFromShareableHandle(&imported, AsHandle(fd), kFile));
  const CUdeviceptr first = Map(made), second = Map(imported);
  ASSERT_CUDA(cuMemsetD32(first, 77, 4));
  EXPECT_EQ(ReadInts(second, 1)[0], 77);
  EXPECT_CUDA(cuMemRelease(made));
  Unmap(first);
  EXPECT_EQ(ReadInts(second, 1)[0], 77);
  EXPECT_CUDA(cuMemRelease(imported));
  Unmap(second);
  // The descriptor alone keeps the bytes.
  ASSERT_CUDA(cuMemImportFromShareableHandle(&imported, AsHandle(fd), kFile));
  const CUdeviceptr third = Map(imported);
  EXPECT_EQ(ReadInts(third, 1)[0], 77);
  EXPECT_CUDA(cuMemRelease(imported));
  Unmap(third);
  close(fd);
}

struct Mapped {
  CUdeviceptr address = 0;
  size_t bytes = 0;
  bool Map(CUmemGenericAllocationHandle handle) {
    const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return cuMemAddressReserve(&address, bytes, 0, 0, 0) == CUDA_SUCCESS &&
           cuMemMap(address, bytes, 0, handle, 0) == CUDA_SUCCESS &&
           cuMemSetAccess(address, bytes, &access, 1) == CUDA_SUCCESS;
  }
};

bool OpenCard() {
  CUcontext context = nullptr;
  return cuInit(0) == CUDA_SUCCESS && cuCtxCreate(&context, nullptr, 0, 0) == CUDA_SUCCESS;
}

constexpr size_t kShared = 4 << 20;
constexpr auto kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

// Exports 4 MiB of 7, and looks at what the other process has made of it.
[[noreturn]] void Export(int channel) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  prop.requestedHandleTypes = kFile;
  CUmemGenericAllocationHandle handle = 0;
  Mapped mapped;
  mapped.bytes = kShared;
  int fd = -1, last = 0;
  char done = 0;
  if (!OpenCard() || cuMemCreate(&handle, kShared, &prop, 0) != CUDA_SUCCESS) _exit(10);
  if (!mapped.Map(handle) || cuMemsetD32(mapped.address, 7, kShared / 4) != CUDA_SUCCESS) _exit(11);
  if (cuMemExportToShareableHandle(&fd, handle, kFile, 0) != CUDA_SUCCESS) _exit(12);
  char byte = 'f';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(channel, &message, 0) != 1) _exit(13);
  if (read(channel, &done, 1) != 1) _exit(14);
  if (cuMemcpyDtoH(&last, mapped.address + kShared - 4, 4) != CUDA_SUCCESS) _exit(15);
  _exit(last == 9 ? 0 : 16);
}

int ReceiveDescriptor(int channel) {
  char byte = 0;
  iovec data{&byte, 1};
  int fd = -1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(channel, &message, 0) != 1) return -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

TEST(SharedBetweenProcesses, AnImportedDescriptorIsTheSameMemory) {
  RunWith({}, [] {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const pid_t exporter = fork();  // before the driver is there in either
    if (exporter == 0) Export(ends[1]);
    const int fd = ReceiveDescriptor(ends[0]);
    ASSERT_GE(fd, 0);
    ASSERT_TRUE(OpenCard());
    size_t free_before = 0, free_after = 0, total = 0;
    ASSERT_CUDA(cuMemGetInfo(&free_before, &total));
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_CUDA(cuMemImportFromShareableHandle(
        &handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)), kFile));
    close(fd);
    ASSERT_CUDA(cuMemGetInfo(&free_after, &total));
    EXPECT_EQ(free_before, free_after) << "the exporter's card holds it";
    CUmemAllocationProp prop{};
    ASSERT_CUDA(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
    EXPECT_EQ(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    Mapped mapped;
    mapped.bytes = kShared;
    ASSERT_TRUE(mapped.Map(handle));
    int first = 0;
    ASSERT_CUDA(cuMemcpyDtoH(&first, mapped.address, 4));
    EXPECT_EQ(first, 7);
    ASSERT_CUDA(cuMemsetD32(mapped.address, 9, kShared / 4));
    ASSERT_EQ(write(ends[0], "x", 1), 1);
    int status = -1;
    ASSERT_EQ(waitpid(exporter, &status, 0), exporter);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    ASSERT_CUDA(cuMemcpyDtoH(&first, mapped.address, 4)) << "the exporter has ended";
    EXPECT_EQ(first, 9);
    EXPECT_CUDA(cuMemRelease(handle));
    EXPECT_CUDA(cuMemUnmap(mapped.address, kShared));
    EXPECT_CUDA(cuMemAddressFree(mapped.address, kShared));
  });
}

TEST_F(SharedMemory, MemoryThatWasNotMeantToBeSharedIsNot) {
  int fd = -1;
  CUmemGenericAllocationHandle handle = 0;
  prop_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  ASSERT_CUDA(cuMemCreate(&handle, granule_, &prop_, 0));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuMemExportToShareableHandle(&fd, handle, kFile, 0));
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED,
                cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  EXPECT_CUDA(cuMemRelease(handle));
}

TEST_F(SharedMemory, OtherDescriptorsAreRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemImportFromShareableHandle(&handle, AsHandle(ends[0]), kFile));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE,
                cuMemImportFromShareableHandle(&handle, AsHandle(-1), kFile));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace atp::sim
