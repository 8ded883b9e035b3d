// SPDX-License-Identifier: Apache-2.0
// How many blocks a multiprocessor holds. Register counts come from PTX and are estimates
// (docs/sim.md), so the numbers may differ from a real card's.
#include <algorithm>

#include "sim/driver/driver.h"
#include "sim/driver/launch.h"

namespace atp::sim {
namespace {

CUresult Resolve(Call& call, CUfunction handle, Function** function) {
  return ResolveFunction(call.driver, call.lane(), *call.context, handle, function);
}

CUresult BestBlock(Call& call, int* grid, int* block, CUfunction handle,
                   CUoccupancyB2DSize shared_of, size_t shared_bytes, int limit) {
  if (!grid || !block) return CUDA_ERROR_INVALID_VALUE;
  Function* function = nullptr;
  if (const CUresult result = Resolve(call, handle, &function); result != CUDA_SUCCESS)
    return result;
  const DeviceShape& shape = *call.context->device->shape;
  int most = static_cast<int>(function->info->max_threads_per_block);
  if (limit > 0) most = std::min(most, limit);
  int best_threads = 0;
  *grid = *block = 0;
  for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
    const int tried = std::min(threads, most);
    const size_t shared = shared_of ? shared_of(tried) : shared_bytes;
    const int blocks =
        BlocksPerMultiprocessor(shape, *function->info, static_cast<uint64_t>(tried), shared);
    if (blocks * tried <= best_threads) continue;
    best_threads = blocks * tried;
    *block = tried;
    *grid = blocks * shape.multiprocessors;
  }
  return CUDA_SUCCESS;
}

CUresult ActiveBlocks(Call& call, int* blocks, CUfunction handle, int block_threads,
                      size_t shared_bytes) {
  if (!blocks || block_threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  Function* function = nullptr;
  if (const CUresult result = Resolve(call, handle, &function); result != CUDA_SUCCESS)
    return result;
  const auto threads = static_cast<uint64_t>(block_threads);
  *blocks = threads > function->info->max_threads_per_block
                ? 0
                : BlocksPerMultiprocessor(*call.context->device->shape, *function->info, threads,
                                          shared_bytes);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function,
                                                    int block_threads, size_t shared_bytes) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return ActiveBlocks(call, blocks, function, block_threads, shared_bytes);
}

ATP_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                             int block_threads, size_t shared_bytes,
                                                             unsigned) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return ActiveBlocks(call, blocks, function, block_threads, shared_bytes);
}

ATP_API cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                         CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                         int limit) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return BestBlock(call, grid, block, function, shared_of, shared_bytes, limit);
}

ATP_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                  CUoccupancyB2DSize shared_of, size_t shared_bytes,
                                                  int limit, unsigned) {
  ATP_CALL(kNeedsContext, cost::kCall);
  return BestBlock(call, grid, block, function, shared_of, shared_bytes, limit);
}

ATP_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                int block_threads) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!bytes || blocks <= 0 || block_threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  Function* function = nullptr;
  if (const CUresult result = Resolve(call, handle, &function); result != CUDA_SUCCESS)
    return result;
  const DeviceShape& shape = *call.context->device->shape;
  const int reserved = shape.major >= 8 ? 1024 : 0;
  const int each = shape.shared_bytes_per_multiprocessor / blocks / 128 * 128 - reserved;
  const int left = std::min(each, shape.shared_bytes_per_block_optin) -
                   static_cast<int>(function->info->static_shared_bytes);
  *bytes = static_cast<size_t>(std::max(left, 0));
  return CUDA_SUCCESS;
}
