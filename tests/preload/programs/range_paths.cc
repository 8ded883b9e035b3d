// SPDX-License-Identifier: Apache-2.0
// Uses virtual memory management in every way, right and wrong, and prints each answer as
// "case: answer". What it prints must not depend on whether a preload library is there, but for the
// cases "crowded", "captured" and "orphaned", which managed memory cannot serve.
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include <vector>

namespace {

constexpr size_t kMiB = 1u << 20, kPage = 2 * kMiB;
using Handle = CUmemGenericAllocationHandle;

void Say(const char* name, CUresult result) {
  const char* text = "?";
  cuGetErrorName(result, &text);
  printf("%s: %s\n", name, text);
}
void Say(const char* name, const char* what, unsigned long long value) {
  printf("%s: %s %llu\n", name, what, value);
}

CUmemAllocationProp OnDevice() {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  return prop;
}

constexpr CUmemAllocationHandleType kFile = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

Handle Create(size_t bytes, bool to_share = false) {
  CUmemAllocationProp prop = OnDevice();
  if (to_share) prop.requestedHandleTypes = kFile;
  Handle handle = 0;
  const CUresult result = cuMemCreate(&handle, bytes, &prop, 0);
  if (result != CUDA_SUCCESS) Say("create", result);
  return handle;
}

CUdeviceptr Reserve(size_t bytes) {
  CUdeviceptr address = 0;
  const CUresult result = cuMemAddressReserve(&address, bytes, 0, 0, 0);
  if (result != CUDA_SUCCESS) Say("reserve", result);
  return address;
}

CUresult Allow(CUdeviceptr address, size_t bytes) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(address, bytes, &access, 1);
}

unsigned ValueAt(CUdeviceptr address) {
  unsigned value = ~0u;
  cuMemcpyDtoH(&value, address, 4);
  return value;
}

void Use() {
  const CUdeviceptr range = Reserve(16 * kMiB);
  const Handle handle = Create(4 * kMiB);
  Say("map", cuMemMap(range + 2 * kMiB, 4 * kMiB, 0, handle, 0));
  Say("access", Allow(range + 2 * kMiB, 4 * kMiB));
  unsigned long long flags = 9;
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  Say("access is told", cuMemGetAccess(&flags, &here, range + 3 * kMiB));
  Say("access", "is", flags);
  Say("set", cuMemsetD32(range + 2 * kMiB, 77, kMiB));
  Say("value", "is", ValueAt(range + 6 * kMiB - 4));
  Handle again = 0;
  Say("retain", cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 3 * kMiB)));
  CUmemAllocationProp prop = {};
  Say("properties", cuMemGetAllocationPropertiesFromHandle(&prop, again));
  Say("properties", "name the device", prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  Say("release", cuMemRelease(again));
  Say("release", cuMemRelease(handle));
  Say("value without a handle", "is", ValueAt(range + 2 * kMiB));
  Say("free of a range in use", cuMemAddressFree(range, 16 * kMiB));
  Say("unmap", cuMemUnmap(range + 2 * kMiB, 4 * kMiB));
  Say("free of a part", cuMemAddressFree(range, 8 * kMiB));
  Say("free", cuMemAddressFree(range, 16 * kMiB));
  Say("free once more", cuMemAddressFree(range, 16 * kMiB));
}

void Wrong() {
  const CUdeviceptr range = Reserve(16 * kMiB);
  const Handle handle = Create(4 * kMiB);
  Say("map with an offset", cuMemMap(range, kPage, kPage, handle, 0));
  Say("map of more than there is", cuMemMap(range, 6 * kMiB, 0, handle, 0));
  Say("map that is not aligned", cuMemMap(range + 4096, kPage, 0, handle, 0));
  Say("map beyond the range", cuMemMap(range + 14 * kMiB, 4 * kMiB, 0, handle, 0));
  Say("map of nothing", cuMemMap(range, kPage, 0, 12345, 0));
  Say("map", cuMemMap(range, 4 * kMiB, 0, handle, 0));
  const Handle other = Create(kPage);
  Say("map over a mapping", cuMemMap(range + kPage, kPage, 0, other, 0));
  Say("unmap of a part", cuMemUnmap(range, kPage));
  Say("unmap of more", cuMemUnmap(range, 6 * kMiB));
  Say("access beyond a mapping", Allow(range, 6 * kMiB));
  Say("plain free of it", cuMemFree(range));
  Say("release", cuMemRelease(handle));
  Say("release once more than there are handles", cuMemRelease(other));
  Say("release of one that is gone", cuMemRelease(other));
  Say("unmap", cuMemUnmap(range, 4 * kMiB));
  Say("unmap once more", cuMemUnmap(range, 4 * kMiB));
  const CUmemAllocationProp prop = OnDevice();
  Handle none = 0;
  Say("create of nothing", cuMemCreate(&none, 0, &prop, 0));
  Say("create without a place", cuMemCreate(&none, kPage, nullptr, 0));
  Say("create of half a page", cuMemCreate(&none, kMiB, &prop, 0));
  Say("free", cuMemAddressFree(range, 16 * kMiB));
}

// The bytes belong to the memory, not to the address.
void Moves() {
  const CUdeviceptr range = Reserve(16 * kMiB), other = Reserve(16 * kMiB);
  const Handle first = Create(4 * kMiB), second = Create(4 * kMiB);
  Say("map", cuMemMap(range, 4 * kMiB, 0, first, 0));
  Allow(range, 4 * kMiB);
  Say("set", cuMemsetD32(range, 1, kMiB));
  Say("unmap", cuMemUnmap(range, 4 * kMiB));
  Say("map another in its place", cuMemMap(range, 4 * kMiB, 0, second, 0));
  Allow(range, 4 * kMiB);
  Say("set", cuMemsetD32(range, 2, kMiB));
  Say("map elsewhere", cuMemMap(other + 8 * kMiB, 4 * kMiB, 0, first, 0));
  Allow(other + 8 * kMiB, 4 * kMiB);
  Say("first", "is", ValueAt(other + 8 * kMiB));
  Say("first", "ends with", ValueAt(other + 12 * kMiB - 4));
  Say("second", "is", ValueAt(range));
  Say("unmap", cuMemUnmap(other + 8 * kMiB, 4 * kMiB));
  Say("map overlapping its old place", cuMemMap(other + 6 * kMiB, 4 * kMiB, 0, first, 0));
  Allow(other + 6 * kMiB, 4 * kMiB);
  Say("first", "is", ValueAt(other + 6 * kMiB));
  Say("first", "ends with", ValueAt(other + 10 * kMiB - 4));
  Say("unmap", cuMemUnmap(other + 6 * kMiB, 4 * kMiB));
  Say("free of its range", cuMemAddressFree(other, 16 * kMiB));
  Say("unmap", cuMemUnmap(range, 4 * kMiB));
  Say("map", cuMemMap(range + 8 * kMiB, 4 * kMiB, 0, first, 0));
  Allow(range + 8 * kMiB, 4 * kMiB);
  Say("first", "is", ValueAt(range + 8 * kMiB));
  for (Handle handle : {first, second}) Say("release", cuMemRelease(handle));
  Say("unmap", cuMemUnmap(range + 8 * kMiB, 4 * kMiB));
  Say("free", cuMemAddressFree(range, 16 * kMiB));
}

void Attributes() {
  const CUdeviceptr range = Reserve(16 * kMiB);
  for (int i = 0; i < 2; ++i) {
    const Handle handle = Create(4 * kMiB);
    cuMemMap(range + 4 * kMiB * (i + 1), 4 * kMiB, 0, handle, 0);
    cuMemRelease(handle);
  }
  Allow(range + 4 * kMiB, 8 * kMiB);
  for (size_t offset : {4 * kMiB, 7 * kMiB, 8 * kMiB, 11 * kMiB, 0 * kMiB, 12 * kMiB}) {
    CUdeviceptr base = 0;
    size_t size = 0;
    const CUresult result = cuMemGetAddressRange(&base, &size, range + offset);
    Say("range", result);
    if (result != CUDA_SUCCESS) continue;
    Say("range", "starts at", base - range);
    Say("range", "has bytes", size);
  }
  cuMemUnmap(range + 4 * kMiB, 8 * kMiB);
  cuMemAddressFree(range, 16 * kMiB);
}

// As a caching allocator with segments that grow and shrink: a terabyte of addresses, ten thousand
// pages that come and go.
void Expandable() {
  constexpr size_t kRange = size_t{1} << 40;
  const CUdeviceptr range = Reserve(kRange);
  Say("reserve", "gave a terabyte", range != 0);
  unsigned long long good = 0;
  for (int i = 0; i < 10000; ++i) {
    const CUdeviceptr page = range + kPage * (static_cast<size_t>(i) * 7919 % 500000);
    const Handle handle = Create(kPage);
    good += cuMemMap(page, kPage, 0, handle, 0) == CUDA_SUCCESS &&
            Allow(page, kPage) == CUDA_SUCCESS && cuMemRelease(handle) == CUDA_SUCCESS;
    good += cuMemUnmap(page, kPage) == CUDA_SUCCESS;
  }
  Say("calls that worked", "are", good);
  Say("free", cuMemAddressFree(range, kRange));
}

void Numbers() {
  size_t before = 0, after = 0, total = 0;
  cuMemGetInfo(&before, &total);
  const Handle handle = Create(8 * kMiB);
  cuMemGetInfo(&after, &total);
  Say("free", "fell at create by", before - after);
  const CUdeviceptr range = Reserve(8 * kMiB);
  cuMemMap(range, 8 * kMiB, 0, handle, 0);
  cuMemRelease(handle);
  cuMemGetInfo(&after, &total);
  Say("free", "is less while it is mapped by", before - after);
  cuMemUnmap(range, 8 * kMiB);
  cuMemGetInfo(&after, &total);
  Say("free", "came back", before == after);
  cuMemAddressFree(range, 8 * kMiB);
}

// Memory mapped in `range` at `offset`, with a value of its own.
Handle Mapped(CUdeviceptr address, size_t bytes, unsigned value, bool to_share = false) {
  const Handle handle = Create(bytes, to_share);
  Say("map", cuMemMap(address, bytes, 0, handle, 0));
  Say("access", Allow(address, bytes));
  Say("set", cuMemsetD32(address, value, bytes / 4));
  return handle;
}

void SayFlags(CUdeviceptr address) {
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  unsigned long long flags = 9;
  Say("access is told", cuMemGetAccess(&flags, &here, address));
  Say("access", "is", flags);
}

// The same memory seen from several places, in ranges that show other memory as well.
void Aliases() {
  size_t before = 0, after = 0, total = 0;
  cuMemGetInfo(&before, &total);
  const CUdeviceptr range = Reserve(32 * kMiB), other = Reserve(16 * kMiB);
  const Handle twice = Mapped(range, 4 * kMiB, 1), let_go = Mapped(range + 4 * kMiB, kPage, 2);
  const Handle unmapped = Mapped(range + 8 * kMiB, kPage, 3);
  const Handle elsewhere = Mapped(other, 4 * kMiB, 4);
  const Handle no_access = Create(kPage);
  Say("map", cuMemMap(range + 12 * kMiB, kPage, 0, no_access, 0));
  Handle again = 0;
  Say("retain", cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range)));
  Say("release", cuMemRelease(let_go));
  Say("unmap", cuMemUnmap(range + 8 * kMiB, kPage));
  Say("second mapping that is wrong", cuMemMap(other + kPage, 4 * kMiB, 0, twice, 0));
  Say("second mapping", cuMemMap(other + 8 * kMiB, 4 * kMiB, 0, twice, 0));
  Say("third mapping", cuMemMap(range + 16 * kMiB, kPage, 0, twice, 0));
  for (CUdeviceptr address : {range, range + 12 * kMiB, range + 16 * kMiB}) SayFlags(address);
  Say("access", Allow(other + 8 * kMiB, 4 * kMiB));
  Say("access", Allow(range + 16 * kMiB, kPage));
  for (CUdeviceptr address : {range, range + 4 * kMiB - 4, range + 4 * kMiB, other,
                              other + 12 * kMiB - 4, range + 16 * kMiB}) {
    Say("value", "is", ValueAt(address));
  }
  Say("set", cuMemsetD32(other + 8 * kMiB, 5, kMiB));
  Say("value through the first", "is", ValueAt(range));
  Say("value through the third", "is", ValueAt(range + 16 * kMiB));
  Say("map of what was unmapped", cuMemMap(range + 24 * kMiB, kPage, 0, unmapped, 0));
  Say("access", Allow(range + 24 * kMiB, kPage));
  Say("value", "is", ValueAt(range + 24 * kMiB));
  CUdeviceptr base = 0;
  size_t size = 0;
  Say("range", cuMemGetAddressRange(&base, &size, range + 3 * kMiB));
  Say("range", "has bytes", size);
  cuMemGetInfo(&after, &total);
  Say("free", "is less by", before - after);
  Say("unmap of the first", cuMemUnmap(range, 4 * kMiB));
  for (Handle handle : {twice, again, twice}) Say("release", cuMemRelease(handle));
  Say("value that is left", "is", ValueAt(other + 12 * kMiB - 4));
  Say("retain", cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(range + 4 * kMiB)));
  Say("unmap", cuMemUnmap(range + 4 * kMiB, kPage));
  Say("map", cuMemMap(range, kPage, 0, again, 0));
  Say("access", Allow(range, kPage));
  Say("value", "is", ValueAt(range));
  for (Handle handle : {again, unmapped, elsewhere, no_access}) {
    Say("release", cuMemRelease(handle));
  }
  for (size_t offset : {0, 12, 16, 24}) Say("unmap", cuMemUnmap(range + offset * kMiB, kPage));
  for (size_t offset : {0, 8}) Say("unmap", cuMemUnmap(other + offset * kMiB, 4 * kMiB));
  Say("free", cuMemAddressFree(range, 32 * kMiB));
  Say("free", cuMemAddressFree(other, 16 * kMiB));
  cuMemGetInfo(&after, &total);
  Say("free", "came back", before == after);
}

// A program that asks again when a second mapping is refused; meanwhile nothing may have changed.
void Stubborn() {
  const CUdeviceptr range = Reserve(32 * kMiB);
  const Handle twice = Mapped(range, 4 * kMiB, 1), let_go = Mapped(range + 4 * kMiB, kPage, 2);
  const Handle unmapped = Mapped(range + 8 * kMiB, kPage, 3);
  Say("release", cuMemRelease(let_go));
  Say("unmap", cuMemUnmap(range + 8 * kMiB, kPage));
  CUresult result = CUDA_ERROR_UNKNOWN;
  for (int i = 0; i < 3 && result != CUDA_SUCCESS; ++i) {
    result = cuMemMap(range + 16 * kMiB, 4 * kMiB, 0, twice, 0);
    if (ValueAt(range) != 1 || ValueAt(range + 4 * kMiB) != 2) printf("bytes are lost\n");
    if (cuMemsetD32(range + 4 * kMiB, 2, kPage / 4) != CUDA_SUCCESS) printf("no access\n");
  }
  Say("second mapping", result);
  Say("map of what was unmapped", cuMemMap(range + 8 * kMiB, kPage, 0, unmapped, 0));
  for (size_t offset : {8, 16}) Say("access", Allow(range + offset * kMiB, offset / 4 * kMiB));
  for (size_t offset : {0, 4, 8, 16}) Say("value", "is", ValueAt(range + offset * kMiB));
  for (size_t offset : {4, 8}) Say("unmap", cuMemUnmap(range + offset * kMiB, kPage));
  for (size_t offset : {0, 16}) Say("unmap", cuMemUnmap(range + offset * kMiB, 4 * kMiB));
  for (Handle handle : {twice, unmapped}) Say("release", cuMemRelease(handle));
  Say("free", cuMemAddressFree(range, 32 * kMiB));
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  Say("memory", "is free", free);
}

// Memory that is given to others, mapped or not, and comes back as an import.
void Exported() {
  const CUdeviceptr range = Reserve(16 * kMiB), other = Reserve(16 * kMiB);
  const Handle mapped = Mapped(range, 4 * kMiB, 1, true);
  const Handle unmapped = Mapped(range + 8 * kMiB, kPage, 2, true);
  const Handle alone = Mapped(other, kPage, 3);
  Say("unmap", cuMemUnmap(range + 8 * kMiB, kPage));
  int file = -1, second_file = -1;
  Say("export", cuMemExportToShareableHandle(&file, mapped, kFile, 0));
  Say("export of what is not mapped",
      cuMemExportToShareableHandle(&second_file, unmapped, kFile, 0));
  Say("export of what is not for export", cuMemExportToShareableHandle(&file, alone, kFile, 0));
  Say("multicast", cuMulticastBindMem(0, 0, unmapped, 0, kPage, 0));
  Handle import = 0, second_import = 0;
  Say("import", cuMemImportFromShareableHandle(
                    &import, reinterpret_cast<void*>(static_cast<intptr_t>(file)), kFile));
  Say("import",
      cuMemImportFromShareableHandle(
          &second_import, reinterpret_cast<void*>(static_cast<intptr_t>(second_file)), kFile));
  Say("map", cuMemMap(other + 4 * kMiB, 4 * kMiB, 0, import, 0));
  Say("map", cuMemMap(other + 8 * kMiB, kPage, 0, second_import, 0));
  Say("map", cuMemMap(range + 8 * kMiB, kPage, 0, unmapped, 0));
  Say("access", Allow(other + 4 * kMiB, 4 * kMiB + kPage));
  Say("access", Allow(range + 8 * kMiB, kPage));
  for (CUdeviceptr address : {range, range + 8 * kMiB, other, other + 4 * kMiB, other + 8 * kMiB}) {
    Say("value", "is", ValueAt(address));
  }
  Say("set", cuMemsetD32(other + 4 * kMiB, 4, kPage / 4));
  Say("value in the exported memory", "is", ValueAt(range));
  for (Handle handle : {mapped, unmapped, alone, import, second_import, unmapped}) {
    Say("release", cuMemRelease(handle));
  }
  Say("unmap", cuMemUnmap(range, 4 * kMiB));
  Say("unmap", cuMemUnmap(range + 8 * kMiB, kPage));
  Say("unmap", cuMemUnmap(other, kPage));
  Say("unmap", cuMemUnmap(other + 4 * kMiB, 4 * kMiB + kPage));
  for (CUdeviceptr address : {range, other}) Say("free", cuMemAddressFree(address, 16 * kMiB));
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  Say("memory", "is free", free);
}

// More than the card has: nothing of it may be lost, whatever is refused.
void Crowded() {
  constexpr unsigned kPieces = 12;
  const CUdeviceptr range = Reserve(64 * kMiB);
  Handle first = 0;
  for (unsigned i = 0; i < kPieces; ++i) {
    const Handle handle = Mapped(range + i * 4 * kMiB, 4 * kMiB, i + 1);
    if (i == 0) first = handle;
  }
  Say("second mapping", cuMemMap(range + 48 * kMiB, 4 * kMiB, 0, first, 0));
  unsigned good = 0;
  for (unsigned i = 0; i < kPieces; ++i) {
    good += ValueAt(range + i * 4 * kMiB) == i + 1 && ValueAt(range + i * 4 * kMiB + 4) == i + 1;
  }
  Say("pieces as they were", "are", good);
  Say("unmap", cuMemUnmap(range + 4 * kMiB, 44 * kMiB));
  Say("second mapping", cuMemMap(range + 48 * kMiB, 4 * kMiB, 0, first, 0));
  Say("access", Allow(range + 48 * kMiB, 4 * kMiB));
  Say("value through the second", "is", ValueAt(range + 48 * kMiB));
}

// Another thread records a graph, in a mode that leaves the others alone.
void Captured() {
  const CUdeviceptr range = Reserve(16 * kMiB);
  const Handle handle = Mapped(range, kPage, 7);
  CUstream stream;
  CUgraph graph = nullptr;
  Say("stream", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Say("begin", cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  const CUresult meanwhile = cuMemMap(range + 4 * kMiB, kPage, 0, handle, 0);
  Say("set", cuMemsetD32Async(range, 8, kPage / 4, stream));
  Say("end", cuStreamEndCapture(stream, &graph));
  Say("second mapping while recording", meanwhile);
  if (meanwhile != CUDA_SUCCESS) {
    Say("second mapping afterwards", cuMemMap(range + 4 * kMiB, kPage, 0, handle, 0));
  }
  CUgraphExec exec;
  Say("access", Allow(range + 4 * kMiB, kPage));
  Say("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
  Say("launch", cuGraphLaunch(exec, stream));
  Say("wait", cuStreamSynchronize(stream));
  Say("value through the second", "is", ValueAt(range + 4 * kMiB));
}

// The context that the memory was used in is gone.
void Orphaned() {
  const CUdeviceptr range = Reserve(16 * kMiB);
  const Handle handle = Mapped(range, kPage, 7);
  Say("reset", cuDevicePrimaryCtxReset(0));
  Say("second mapping", cuMemMap(range + 4 * kMiB, kPage, 0, handle, 0));
  Say("release", cuMemRelease(handle));
  Say("unmap", cuMemUnmap(range, kPage));
}

// At a wished address, so that it is the driver's range: memory of either kind can be mapped there.
void Wished() {
  const CUdeviceptr free_place = Reserve(64 * kMiB);
  cuMemAddressFree(free_place, 64 * kMiB);
  CUdeviceptr range = 0;
  Say("reserve", cuMemAddressReserve(&range, 64 * kMiB, 0, free_place, 0));
  Say("reserve", "gave the wish", range == free_place);
  const Handle handle = Create(kPage);
  Say("map", cuMemMap(range, kPage, 0, handle, 0));
  Say("second mapping", cuMemMap(range + 4 * kMiB, kPage, 0, handle, 0));
  Allow(range, kPage);
  Allow(range + 4 * kMiB, kPage);
  Say("set", cuMemsetD32(range, 5, kPage / 4));
  Say("value through the second mapping", "is", ValueAt(range + 4 * kMiB));
  Say("unmap", cuMemUnmap(range, kPage));
  Say("unmap", cuMemUnmap(range + 4 * kMiB, kPage));
  Say("release", cuMemRelease(handle));
  Say("free", cuMemAddressFree(range, 64 * kMiB));
}

// Addresses that were reserved before there was a context take memory as all others do.
void Early(CUdeviceptr range) {
  const Handle handle = Create(4 * kMiB);
  Say("map", cuMemMap(range, 4 * kMiB, 0, handle, 0));
  Say("access", Allow(range, 4 * kMiB));
  Say("set", cuMemsetD32(range, 6, kMiB));
  Say("value", "is", ValueAt(range + 4 * kMiB - 4));
  Say("second mapping", cuMemMap(range + 8 * kMiB, 4 * kMiB, 0, handle, 0));
  Say("access", Allow(range + 8 * kMiB, 4 * kMiB));
  Say("value through the second", "is", ValueAt(range + 8 * kMiB));
  Say("release", cuMemRelease(handle));
  for (size_t offset : {0, 8}) Say("unmap", cuMemUnmap(range + offset * kMiB, 4 * kMiB));
  Say("free", cuMemAddressFree(range, 16 * kMiB));
  size_t free = 0, total = 0;
  cuMemGetInfo(&free, &total);
  Say("memory", "is free", free);
}

}  // namespace

int main(int argc, char** argv) {
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS) return 1;
  const CUmemAllocationProp prop = OnDevice();
  Handle early = 0;
  Say("create before a context", cuMemCreate(&early, kPage, &prop, 0));
  Say("release", cuMemRelease(early));
  CUdeviceptr before = 0;
  const bool is_early = argc == 2 && strcmp(argv[1], "early") == 0;
  if (is_early) {
    Say("reserve before a context", cuMemAddressReserve(&before, 16 * kMiB, 0, 0, 0));
  }
  if (cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  const struct {
    const char* name;
    void (*run)();
  } kCases[] = {{"use", Use},
                {"wrong", Wrong},
                {"moves", Moves},
                {"attributes", Attributes},
                {"expandable", Expandable},
                {"numbers", Numbers},
                {"aliases", Aliases},
                {"stubborn", Stubborn},
                {"exported", Exported},
                {"crowded", Crowded},
                {"captured", Captured},
                {"orphaned", Orphaned},
                {"wished", Wished}};
  for (const auto& one : kCases) {
    if (argc == 2 && strcmp(argv[1], one.name) == 0) one.run();
  }
  if (is_early) Early(before);
  return 0;
}
