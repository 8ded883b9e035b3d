// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/launch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/host_touches.h"

namespace atp::sim {
namespace {

constexpr uint64_t kReservedSharedPerBlock =
    1 << 10;  // the system's share, compute capability 8 and later

CUresult FromExecution(ExecStatus status) {
  switch (status) {
    case ExecStatus::kOk:
      return CUDA_SUCCESS;
    case ExecStatus::kIllegalAddress:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ExecStatus::kMisalignedAddress:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ExecStatus::kTrap:
      return CUDA_ERROR_LAUNCH_FAILED;
    case ExecStatus::kAssert:
      return CUDA_ERROR_ASSERT;
    case ExecStatus::kInstructionLimit:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case ExecStatus::kUnsupported:
      break;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

// A packed buffer given by CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE.
CUresult PackFromBuffer(void** extra, std::vector<uint8_t>* packed) {
  const void* buffer = nullptr;
  size_t bytes = 0;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<const size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (!buffer && bytes) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(packed->data(), buffer, std::min(bytes, packed->size()));
  return CUDA_SUCCESS;
}

CUresult CheckConfig(const DeviceShape& shape, const Function& function,
                     const LaunchConfig& config) {
  const uint64_t threads = uint64_t{config.block[0]} * config.block[1] * config.block[2];
  for (int i = 0; i < 3; ++i) {
    if (config.grid[i] == 0 || config.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  if (config.grid[0] > 0x7fffffffu || config.grid[1] > 65535 || config.grid[2] > 65535)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > 1024 || config.block[2] > 64) return CUDA_ERROR_INVALID_VALUE;
  if (threads > function.info->max_threads_per_block) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const uint32_t* required = function.info->required_block;
  if (required[0] && !std::equal(required, required + 3, config.block))
    return CUDA_ERROR_INVALID_VALUE;
  const auto allowed = static_cast<uint64_t>(function.settings.max_dynamic_shared_bytes);
  const uint64_t all_shared =
      uint64_t{config.dynamic_shared_bytes} + function.info->static_shared_bytes;
  if (config.dynamic_shared_bytes > allowed ||
      all_shared > static_cast<uint64_t>(shape.shared_bytes_per_block_optin))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult PackArguments(const KernelInfo& info, void** kernel_params, void** extra,
                       std::vector<uint8_t>* packed) {
  packed->assign(info.param_bytes, 0);
  if (kernel_params && extra) return CUDA_ERROR_INVALID_VALUE;
  if (extra) return PackFromBuffer(extra, packed);
  if (info.params.empty()) return CUDA_SUCCESS;
  if (!kernel_params) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < info.params.size(); ++i) {
    if (!kernel_params[i]) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(packed->data() + info.params[i].offset, kernel_params[i], info.params[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult MakeKernelTask(Driver&, Function& function, const LaunchConfig& config,
                        void** kernel_params, void** extra, KernelTask* task) {
  const DeviceShape& shape = *function.module->context->device->shape;
  if (const CUresult result = CheckConfig(shape, function, config); result != CUDA_SUCCESS)
    return result;
  task->function = &function;
  task->config = config;
  const uint64_t threads = uint64_t{config.block[0]} * config.block[1] * config.block[2];
  const int per_multiprocessor =
      BlocksPerMultiprocessor(shape, *function.info, threads, config.dynamic_shared_bytes);
  if (per_multiprocessor == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  task->config.blocks_per_wave = static_cast<uint32_t>(per_multiprocessor * shape.multiprocessors);
  if (config.cooperative) {
    const uint64_t blocks = uint64_t{config.grid[0]} * config.grid[1] * config.grid[2];
    if (blocks > task->config.blocks_per_wave) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return PackArguments(*function.info, kernel_params, extra, &task->params);
}

int BlocksPerMultiprocessor(const DeviceShape& shape, const KernelInfo& info,
                            uint64_t block_threads, uint64_t dynamic_shared_bytes) {
  const uint64_t warps = (block_threads + 31) / 32;
  if (warps == 0) return 0;
  uint64_t blocks = static_cast<uint64_t>(shape.max_blocks_per_multiprocessor);
  blocks =
      std::min(blocks, static_cast<uint64_t>(shape.max_threads_per_multiprocessor) / 32 / warps);
  // Registers go to warps in units of 256; what PTX says is an estimate, capped at what a thread
  // may have.
  const uint64_t registers = std::min<uint64_t>(std::max<uint64_t>(info.registers, 16), 255);
  const uint64_t per_warp = (registers * 32 + 255) / 256 * 256;
  const uint64_t most = static_cast<uint64_t>(shape.registers_per_multiprocessor);
  // ptxas spills rather than refuse a block of the declared size, so registers never bring this
  // below one.
  blocks = std::min(blocks, std::max<uint64_t>(most / (per_warp * warps), 1));
  const uint64_t shared = info.static_shared_bytes + dynamic_shared_bytes;
  const uint64_t reserved = shape.major >= 8 ? kReservedSharedPerBlock : 0;
  const uint64_t taken = (shared + reserved + 127) / 128 * 128;
  if (shared > static_cast<uint64_t>(shape.shared_bytes_per_block_optin)) return 0;
  if (taken)
    blocks = std::min(blocks, static_cast<uint64_t>(shape.shared_bytes_per_multiprocessor) / taken);
  return static_cast<int>(blocks);
}

namespace {

void CountModelled(Driver& driver, const std::string& kernel) {
  if (driver.modelled_launches.empty()) {
    std::fprintf(stderr,
                 "libcuda (simulated): ATP_SIM_MODEL=repeats: launches that repeat an earlier one "
                 "are modelled: they take their time and touch their pages, and compute NOTHING. "
                 "The program's results mean nothing from here on (first kernel: %s).\n",
                 kernel.c_str());
  }
  ++driver.modelled_launches[kernel];
}

void CountUninitialised(Driver& driver, const ExecResult& result) {
  driver.uninitialised_reads += result.uninitialised_reads;
  std::fprintf(stderr, "libcuda (simulated): %s (%llu such accesses in this launch)\n",
               result.first_uninitialised.c_str(),
               static_cast<unsigned long long>(result.uninitialised_reads));
}

}  // namespace

CUresult RunKernel(Driver& driver, Lane lane, Stream& stream, const KernelTask& task) {
  Context& context = *stream.context;
  const DeviceView view(driver, context);
  LaunchConfig config = task.config;
  config.clock_ns = static_cast<uint64_t>(driver.machine().Now(lane) / kNs);
  config.model_repeats = driver.settings().model_repeats;
  config.check_reads = driver.settings().check_reads;
  if (config.check_reads) CollectAllHostTouches(driver, lane);  // the host may have written it
  Function& function = *task.function;
  ExecResult result = function.module->code->Execute(function.info->name, config, task.params, view,
                                                     &driver.device_output);
  if (result.status == ExecStatus::kUnsupported) {
    std::fprintf(stderr, "libcuda (simulated): %s\n", result.message.c_str());
    ++driver.execution_failures;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (result.status != ExecStatus::kOk) {
    // As on a real machine: the launch itself succeeds, whatever follows in this context does not.
    std::fprintf(stderr, "libcuda (simulated): %s\n", result.message.c_str());
    ++driver.execution_failures;
    context.sticky = FromExecution(result.status);
  }
  if (result.uninitialised_reads > 0) CountUninitialised(driver, result);
  if (result.modelled) CountModelled(driver, function.info->name);
  if (result.recalled && !result.modelled) ++driver.recalled_launches;
  CollectHostTouches(driver, lane, result.waves);
  KernelWork work;
  work.name = function.info->name;
  work.resident_time = driver.machine().KernelTime(context.device->index, config, result);
  driver.trace().Launched(stream, task, result, work.resident_time);
  if (task.touches != nullptr) *task.touches = {/*known=*/true, result.waves};
  work.waves = std::move(result.waves);
  const uint64_t blocks = uint64_t{config.grid[0]} * config.grid[1] * config.grid[2];
  work.threads = std::min<uint64_t>(blocks, config.blocks_per_wave) * config.block[0] *
                 config.block[1] * config.block[2];
  work.sector_bytes = result.sector_bytes;
  driver.machine().SubmitKernel(lane, stream.id, std::move(work));
  if (context.sticky == CUDA_SUCCESS) Health(driver, context);
  return CUDA_SUCCESS;
}

}  // namespace atp::sim
