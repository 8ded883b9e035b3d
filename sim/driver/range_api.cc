// SPDX-License-Identifier: Apache-2.0
// cuMemRangeGetAttribute(s): what has been advised about managed memory. It never tells real
// residency.
#include <algorithm>
#include <iterator>
#include <optional>

#include "sim/driver/advice.h"
#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

constexpr int kNoLocation = CU_DEVICE_INVALID;

// The value that all pieces share, nothing when they differ.
template <class Get>
auto Shared(const Allocation& allocation, uint64_t begin, uint64_t end, Get get) {
  std::optional<decltype(get(Advised{}))> value;
  bool same = true;
  VisitAdvice(allocation, begin, end, [&](const Advised& advised) {
    const auto here = get(advised);
    if (value && *value != here) same = false;
    value = here;
  });
  return same ? value : std::nullopt;
}

int AsDevice(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_HOST ? CU_DEVICE_CPU : kNoLocation;
}

CUresult AccessedBy(const Allocation& allocation, uint64_t begin, uint64_t end, void* data,
                    size_t bytes) {
  if (bytes == 0 || bytes % sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  bool first = true;
  std::set<int> everywhere;
  VisitAdvice(allocation, begin, end, [&](const Advised& advised) {
    std::set<int> both;
    std::set_intersection(everywhere.begin(), everywhere.end(), advised.accessed_by.begin(),
                          advised.accessed_by.end(), std::inserter(both, both.end()));
    everywhere = first ? advised.accessed_by : both;
    first = false;
  });
  auto* out = static_cast<int*>(data);
  const size_t room = bytes / sizeof(int);
  std::fill(out, out + room, kNoLocation);
  std::copy_n(everywhere.begin(), std::min(room, everywhere.size()), out);
  return CUDA_SUCCESS;
}

CUresult Get(Call& call, void* data, size_t bytes, CUmem_range_attribute attribute,
             CUdeviceptr address, size_t count) {
  if (!data || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* allocation = call.driver.memory().FindRange(address, count);
  if (!allocation || !allocation->IsManaged()) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t begin = address, end = address + count;
  if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
    return AccessedBy(*allocation, begin, end, data, bytes);
  if (bytes != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  int value = 0;
  const auto location = [&](bool preferred, auto part, int none) {
    const auto shared = Shared(*allocation, begin, end, [&](const Advised& advised) {
      return part(preferred ? advised.preferred : advised.last_prefetch);
    });
    return shared.value_or(none);
  };
  const auto type = [](const CUmemLocation& where) { return static_cast<int>(where.type); };
  const auto id = [](const CUmemLocation& where) {
    return where.type == CU_MEM_LOCATION_TYPE_INVALID ? kNoLocation : where.id;
  };
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      value = Shared(*allocation, begin, end, [](const Advised& advised) {
                return advised.read_mostly ? 1 : 0;
              }).value_or(0);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      value = location(true, AsDevice, kNoLocation);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      value = location(false, AsDevice, kNoLocation);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      value = location(true, type, 0);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      value = location(false, type, 0);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      value = location(true, id, kNoLocation);
      break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      value = location(false, id, kNoLocation);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  *static_cast<int*>(data) = value;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuMemRangeGetAttribute(void* data, size_t bytes, CUmem_range_attribute attribute,
                               CUdeviceptr address, size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  return Get(call, data, bytes, attribute, address, count);
}

ATP_API cuMemRangeGetAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes,
                                size_t attribute_count, CUdeviceptr address, size_t count) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!data || !sizes || !attributes || attribute_count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < attribute_count; ++i) {
    const CUresult result = Get(call, data[i], sizes[i], attributes[i], address, count);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}
