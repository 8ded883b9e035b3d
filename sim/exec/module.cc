// SPDX-License-Identifier: Apache-2.0
// Module: loads PTX, describes its kernels and globals, decodes kernels when they are first
// launched.
#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "sim/exec/decoder.h"
#include "sim/exec/exec.h"
#include "sim/exec/launch.h"
#include "sim/exec/touch_memo.h"
#include "sim/exec/variant.h"

namespace atp::sim {
namespace exec {
namespace {

constexpr uint32_t kMaxShared = 1u << 20;

class PtxModule : public Module {
 public:
  bool Init(std::string_view text, std::string* error);
  std::span<const KernelInfo> kernels() const override { return kernels_; }
  std::span<const GlobalInfo> globals() const override { return globals_; }
  void BindGlobal(std::string_view name, uint64_t address) override;
  std::vector<uint8_t> InitialImage(std::string_view name) const override;
  ExecResult Execute(std::string_view kernel, const LaunchConfig& config,
                     std::span<const uint8_t> params, const MemoryMap& memory,
                     std::string* log) override;

 private:
  bool DescribeKernel(const ptx::Function& function, std::string* error);
  bool CheckCallees(const ptx::Function& function, std::string* error) const;
  void Reach(const ptx::Function& function, std::vector<const ptx::Function*>* functions,
             std::unordered_set<const ptx::Variable*>* shared) const;
  struct Decoded {
    KernelCode code;
    TouchMemo memo;
  };
  Decoded* Decode(std::string_view kernel, std::string* error);
  static ExecResult Run(Decoded* kernel, Launch* launch, std::string* log);
  bool CheckConfig(const LaunchConfig& config, const KernelCode& code, Launch* launch,
                   std::string* error) const;
  void ReadyFills(Launch* launch) const;
  uint64_t AddressOf(std::string_view symbol) const;

  ptx::ParsedModule parsed_;
  const Variant& variant_ = CurrentVariant();
  std::vector<KernelInfo> kernels_;
  std::vector<GlobalInfo> globals_;
  std::vector<uint64_t> address_;  // of each parsed variable; 0 = not bound
  std::unordered_map<std::string_view, std::unique_ptr<Decoded>> decoded_;
  InternalMemory internal_;
};

bool PtxModule::Init(std::string_view text, std::string* error) {
  auto check = [this](std::string_view opcode) { return IsSupported(variant_, opcode); };
  if (!ptx::ParseModule(text, check, &parsed_, error)) return false;
  address_.assign(parsed_.variables.size(), 0);
  for (const auto& variable : parsed_.variables) {
    if (variable->space != ptx::Space::kGlobal && variable->space != ptx::Space::kConst) continue;
    if (parsed_.variable_by_name.at(variable->name) != variable.get())
      continue;  // declared again elsewhere
    GlobalInfo info;
    info.name = std::string(variable->name);
    info.bytes = variable->bytes;
    info.alignment = variable->alignment;
    info.is_const = variable->space == ptx::Space::kConst;
    info.is_managed = variable->is_managed;
    info.initial = variable->initial;
    if (variable->is_extern) {
      *error = "line " + std::to_string(variable->line) + ": variable " + info.name +
               " is not defined in this module";
      return false;
    }
    globals_.push_back(std::move(info));
  }
  for (const auto& function : parsed_.functions) {
    if (function->has_body && !CheckCallees(*function, error)) return false;
    if (function->is_entry && function->has_body && !DescribeKernel(*function, error)) return false;
  }
  return true;
}

bool PtxModule::CheckCallees(const ptx::Function& function, std::string* error) const {
  for (std::string_view name : function.names) {
    auto found = parsed_.function_by_name.find(name);
    if (found == parsed_.function_by_name.end()) continue;
    const ptx::Function& callee = *parsed_.functions[found->second];
    if (callee.has_body || BuiltinByName(name) != Builtin::kNone) continue;
    *error = "line " + std::to_string(function.line) + ": " + std::string(function.name) +
             " calls " + std::string(name) + ", which is not defined in this module";
    return false;
  }
  return true;
}

// Functions and shared variables that a kernel can reach, by the names in its text.
void PtxModule::Reach(const ptx::Function& function, std::vector<const ptx::Function*>* functions,
                      std::unordered_set<const ptx::Variable*>* shared) const {
  std::unordered_set<const ptx::Function*> seen{&function};
  functions->push_back(&function);
  for (size_t k = 0; k < functions->size(); ++k) {
    for (std::string_view name : (*functions)[k]->names) {
      if (auto callee = parsed_.function_by_name.find(name);
          callee != parsed_.function_by_name.end()) {
        const ptx::Function* next = parsed_.functions[callee->second].get();
        if (seen.insert(next).second) functions->push_back(next);
      }
      if (auto variable = parsed_.variable_by_name.find(name);
          variable != parsed_.variable_by_name.end()) {
        if (variable->second->space == ptx::Space::kShared) shared->insert(variable->second);
      }
    }
  }
}

bool PtxModule::DescribeKernel(const ptx::Function& function, std::string* error) {
  KernelInfo info;
  info.name = std::string(function.name);
  for (const ptx::Variable& parameter : function.params) {
    ParamInfo param;
    param.offset =
        (info.param_bytes + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
    if (parameter.bytes > 32764 ||
        param.offset + parameter.bytes > 32764) {  // the limit of CUDA 12.1 and later
      *error =
          "line " + std::to_string(parameter.line) + ": too many parameters of kernel " + info.name;
      return false;
    }
    param.size = static_cast<uint32_t>(parameter.bytes);
    param.is_pointer = parameter.is_pointer ||
                       (!parameter.is_array &&
                        (parameter.type == ptx::Type::kU64 || parameter.type == ptx::Type::kB64));
    info.param_bytes = param.offset + param.size;
    info.params.push_back(param);
  }
  std::vector<const ptx::Function*> functions;
  std::unordered_set<const ptx::Variable*> shared;
  Reach(function, &functions, &shared);
  uint64_t shared_bytes = 0, local_bytes = 0;
  for (const ptx::Function* reached : functions) {
    shared_bytes = (shared_bytes + reached->shared_alignment - 1) / reached->shared_alignment *
                   reached->shared_alignment;
    shared_bytes += reached->shared_bytes;
    local_bytes += reached->local_bytes;
  }
  for (const ptx::Variable* variable : shared) {
    if (variable->is_extern) continue;
    shared_bytes =
        (shared_bytes + variable->alignment - 1) / variable->alignment * variable->alignment +
        variable->bytes;
  }
  if (shared_bytes > kMaxShared) {
    *error =
        "line " + std::to_string(function.line) + ": too much shared memory in kernel " + info.name;
    return false;
  }
  info.static_shared_bytes = static_cast<uint32_t>(shared_bytes);
  info.local_bytes = static_cast<uint32_t>(std::min<uint64_t>(local_bytes, UINT32_MAX));
  for (const GlobalInfo& global : globals_) {
    if (global.is_const) info.const_bytes += static_cast<uint32_t>(global.bytes);
  }
  // Virtual registers say little about real ones; longer kernels tend to need more.
  info.registers = std::clamp<uint32_t>(16 + function.instruction_count / 8, 16, 64);
  std::copy_n(function.required_block, 3, info.required_block);
  uint32_t required =
      function.required_block[0] * function.required_block[1] * function.required_block[2];
  if (function.max_threads != 0) info.max_threads_per_block = std::min(1024u, function.max_threads);
  if (required != 0) info.max_threads_per_block = std::min(1024u, required);
  kernels_.push_back(std::move(info));
  return true;
}

void PtxModule::BindGlobal(std::string_view name, uint64_t address) {
  for (size_t k = 0; k < parsed_.variables.size(); ++k) {
    if (parsed_.variables[k]->name == name) address_[k] = address;
  }
}

uint64_t PtxModule::AddressOf(std::string_view symbol) const {
  if (auto found = parsed_.function_by_name.find(symbol); found != parsed_.function_by_name.end()) {
    return TagBase(kTagCode) + uint64_t{found->second} * 16;
  }
  for (size_t k = 0; k < parsed_.variables.size(); ++k) {
    if (parsed_.variables[k]->name == symbol) return address_[k];
  }
  return 0;
}

std::vector<uint8_t> PtxModule::InitialImage(std::string_view name) const {
  auto found = parsed_.variable_by_name.find(name);
  if (found == parsed_.variable_by_name.end()) return {};
  const ptx::Variable& variable = *found->second;
  std::vector<uint8_t> image = variable.initial;
  for (const ptx::InitialAddress& entry : variable.addresses) {
    uint64_t value = AddressOf(entry.symbol) + static_cast<uint64_t>(entry.addend);
    if (entry.offset + entry.bytes <= image.size())
      std::memcpy(image.data() + entry.offset, &value, entry.bytes);
  }
  return image;
}

PtxModule::Decoded* PtxModule::Decode(std::string_view kernel, std::string* error) {
  if (auto found = decoded_.find(kernel); found != decoded_.end()) return found->second.get();
  auto index = parsed_.function_by_name.find(kernel);
  if (index == parsed_.function_by_name.end() || !parsed_.functions[index->second]->is_entry ||
      !parsed_.functions[index->second]->has_body) {
    *error = "no kernel " + std::string(kernel) + " in this module";
    return nullptr;
  }
  auto decoded = std::make_unique<Decoded>();
  KernelBuilder builder(parsed_, variant_, &decoded->code);
  if (!builder.Build(index->second, error)) return nullptr;
  decoded->memo = TouchMemo(builder.touches());
  return decoded_.emplace(index->first, std::move(decoded)).first->second.get();
}

bool PtxModule::CheckConfig(const LaunchConfig& config, const KernelCode& code, Launch* launch,
                            std::string* error) const {
  uint64_t threads = 1, blocks = 1;
  for (int k = 0; k < 3; ++k) {
    if (config.grid[k] == 0 || config.block[k] == 0 || config.grid[k] > 0x7fffffffu ||
        config.block[k] > 1024) {
      *error = "bad launch dimensions";
      return false;
    }
    threads *= config.block[k];
    blocks *= config.grid[k];
    if (threads > 1024 || blocks > uint64_t{1} << 48) {
      *error = "bad launch dimensions";
      return false;
    }
  }
  uint64_t shared = uint64_t{code.static_shared_bytes} + config.dynamic_shared_bytes;
  if (shared > kMaxShared) {
    *error = "too much shared memory";
    return false;
  }
  launch->threads = static_cast<uint32_t>(threads);
  launch->warps = (launch->threads + kLanes - 1) / kLanes;
  launch->blocks = blocks;
  launch->blocks_per_wave =
      config.blocks_per_wave == 0 ? blocks : std::min<uint64_t>(config.blocks_per_wave, blocks);
  launch->shared_bytes = static_cast<uint32_t>(shared);
  return true;
}

uint64_t ParameterValue(const Launch& launch, const Fill& fill) {
  uint64_t value = 0;
  if (fill.symbol + fill.bytes > launch.params.size()) return 0;
  std::memcpy(&value, launch.params.data() + fill.symbol, fill.bytes);
  bool negative = fill.is_signed && fill.bytes < 8 && (value >> (8 * fill.bytes - 1) & 1) != 0;
  return negative ? value | ~uint64_t{0} << (8 * fill.bytes) : value;
}

void PtxModule::ReadyFills(Launch* launch) const {
  for (const auto& program : launch->code->programs) {
    std::vector<ReadyFill>& ready = launch->ready.emplace_back();
    for (const Fill& fill : program->fills) {
      ReadyFill value{fill.slot, fill.wide, fill.kind == Fill::Kind::kPredicate, fill.value};
      switch (fill.kind) {
        case Fill::Kind::kGlobalAddress:
          value.value = fill.symbol < address_.size() ? address_[fill.symbol] + fill.value : 0;
          break;
        case Fill::Kind::kParameter:
          value.value = ParameterValue(*launch, fill);
          break;
        case Fill::Kind::kSpecial:
        case Fill::Kind::kLocalBase:
          continue;
        default:
          break;
      }
      ready.push_back(value);
    }
  }
}

// An equal launch before this one tells what it will touch. It is executed all the same, unless the
// driver wants repeats modelled. The number of instructions is known beforehand only where no
// branch depends on data: elsewhere touches of a launch that is executed are recorded, because
// their order inside a wave could differ.
ExecResult PtxModule::Run(Decoded* kernel, Launch* launch, std::string* log) {
  TouchMemo& memo = kernel->memo;
  const bool model = launch->config.model_repeats;
  std::vector<Region> regions;
  if (!memo.Applies() || (memo.slice().data_branches && !model))
    return RunLaunch(launch, log, &regions);
  const std::string key = memo.Key(launch->config, launch->params);
  ExecResult known;
  if (!memo.Recall(key, *launch->memory, &known)) {
    ExecResult result = RunLaunch(launch, log, &regions);
    if (result.status == ExecStatus::kOk) memo.Remember(key, std::move(regions), result);
    return result;
  }
  known.recalled = true;
  known.modelled = model;
  if (model) return known;
  launch->record_touches = false;
  ExecResult result = RunLaunch(launch, log, &regions);
  result.waves = std::move(known.waves);
  result.recalled = true;
  return result;
}

ExecResult PtxModule::Execute(std::string_view kernel, const LaunchConfig& config,
                              std::span<const uint8_t> params, const MemoryMap& memory,
                              std::string* log) {
  ExecResult result;
  Launch launch;
  Decoded* decoded = Decode(kernel, &result.message);
  if (decoded != nullptr) launch.code = &decoded->code;
  if (decoded == nullptr || !CheckConfig(config, *launch.code, &launch, &result.message)) {
    result.status = ExecStatus::kUnsupported;
    result.message = "kernel " + std::string(kernel) + ": " + result.message;
    return result;
  }
  launch.config = config;
  launch.params.assign(params.begin(), params.end());
  launch.memory = &memory;
  launch.module = &parsed_;
  launch.internal = &internal_;
  if (config.cooperative) internal_.ResetGrid();
  ReadyFills(&launch);
  return Run(decoded, &launch, log);
}

}  // namespace
}  // namespace exec

std::unique_ptr<Module> Module::Load(std::string_view ptx, std::string* error) {
  auto module = std::make_unique<exec::PtxModule>();
  std::string message;
  if (!module->Init(ptx, &message)) {
    if (error != nullptr) *error = message;
    return nullptr;
  }
  return module;
}

}  // namespace atp::sim
