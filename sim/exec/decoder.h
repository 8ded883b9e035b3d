// SPDX-License-Identifier: Apache-2.0
// Turns parsed PTX into Programs. One KernelBuilder per kernel; it decodes the kernel and every
// function that it can reach.
//
// Called by Module at a kernel's first launch, under the caller's serialisation. Text that parses
// but cannot be decoded gives an error "line N: ...", reported by Execute as kUnsupported.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ptx/parser.h"
#include "sim/exec/handlers/pick.h"
#include "sim/exec/program.h"
#include "sim/exec/touch_slice.h"

namespace atp::sim::exec {

// Functions that the machine provides: declared .extern in PTX.
enum class Builtin : uint32_t { kNone, kPrintf, kAssertFail, kMalloc, kFree };
Builtin BuiltinByName(std::string_view name);

// True when some handler or decoder case exists for the opcode, operands aside. What Load asks.
bool IsSupported(const Variant& variant, std::string_view opcode);

class KernelBuilder {
 public:
  KernelBuilder(const ptx::ParsedModule& module, const Variant& variant, KernelCode* code)
      : module_(module), variant_(variant), code_(code) {}
  bool Build(uint32_t function, std::string* error);
  const TouchSlice& touches() const { return touches_; }  // of the kernel that was built

  const ptx::ParsedModule& module() const { return module_; }
  const Variant& variant() const { return variant_; }
  KernelCode* code() { return code_; }
  Program* ProgramOf(uint32_t function);  // made now, decoded later
  uint32_t SharedOffset(const ptx::Variable* variable);
  bool IsExternShared(const ptx::Variable* variable) const {
    return variable->is_extern || variable->bytes == 0;
  }
  uint32_t GlobalIndex(const ptx::Variable* variable) const;
  uint32_t NewCache() { return code_->cache_count++; }

 private:
  const ptx::ParsedModule& module_;
  const Variant& variant_;
  KernelCode* code_;
  TouchSlice touches_;
  std::unordered_map<const ptx::Variable*, uint32_t> shared_;
  std::vector<std::unique_ptr<ptx::Body>>
      bodies_;  // alive until all is decoded: variables are compared by address
};

class Decoder {
 public:
  Decoder(KernelBuilder* builder, const ptx::Function& function, const ptx::Body& body,
          Program* program, std::string* error)
      : builder_(*builder), function_(function), body_(body), program_(*program), error_(error) {}
  bool Run();

 private:
  struct Address {
    uint32_t slot = 0;
    int64_t imm = 0;
    bool wide = true;
    bool is_param = false;  // static place in the parameters: imm = offset
  };
  struct LateCopy {  // a destination whose width differs from the instruction's
    uint32_t from = 0, to = 0;
    Control how = Control::kCopy32;
  };

  // decoder.cc
  void LayOutParameters();
  void LayOutLocals();
  void FindAliases();
  bool TryAlias(const ptx::Instruction& instruction, const ptx::Op& op);
  bool DecodeAll();
  bool DecodeOne(const ptx::Instruction& instruction);
  bool ResolveBranches();
  bool Fail(std::string message);

  // decode_operands.cc
  uint32_t NewSlot(uint32_t bytes);
  uint32_t RegisterSlot(uint32_t reg);
  bool IsWideRegister(uint32_t reg) const { return ptx::TypeBytes(body_.registers[reg]) == 8; }
  uint32_t ConstantSlot(uint64_t bits, bool wide);
  uint32_t FillSlot(Fill fill);
  uint32_t SinkSlot();
  bool ImmediateBits(const ptx::Operand& operand, ptx::Type type, uint64_t* bits);
  bool Source(const ptx::Operand& operand, ptx::Type type, uint32_t* slot);
  bool PredicateSource(const ptx::Operand& operand, uint32_t* slot);
  bool SpecialSource(const ptx::Operand& operand, bool wide, uint32_t* slot);
  bool VariableSource(const ptx::Operand& operand, bool wide, uint32_t* slot);
  bool Destination(const ptx::Operand& operand, ptx::Type type, uint32_t* slot);
  void FinishDestinations();
  bool ReadAddress(const ptx::Operand& operand, const ptx::Op& op, Address* address);
  const ptx::Operand& Element(const ptx::Operand& operand, uint32_t i) const {
    return body_.operands[operand.first + i];
  }
  const ptx::Operand& Arg(uint32_t i) const { return body_.operands[now_->first + i]; }
  uint32_t arg_count() const { return now_->count; }
  Insn& Emit(Handler handler);
  Insn& EmitControl(Control what) { return Emit(builder_.variant().control(what)); }
  bool EmitOp(std::string_view opcode, std::initializer_list<uint32_t> slots);

  // decode_basic.cc
  bool DecodeGeneric(const ptx::Op& op);
  bool DecodeMov(const ptx::Op& op);
  bool DecodeVectorMov(const ptx::Op& op, bool pack);
  bool DecodeSetp(const ptx::Op& op);
  bool DecodeCvta(const ptx::Op& op);
  bool DecodeIsspacep(const ptx::Op& op);
  bool DecodeWarpOp(const ptx::Op& op);

  // decode_matrix.cc
  bool DecodeMatrix(const ptx::Op& op);
  bool VectorTable(const ptx::Operand& operand, ptx::Type type, bool is_destination,
                   std::vector<uint32_t>* table);
  bool CheckMmaTable(const ptx::Op& op, const std::vector<uint32_t>& table);
  bool DecodeAsync(const ptx::Op& op);
  bool DecodeAsyncCopy(const ptx::Op& op, Handler handler);

  // decode_texture.cc
  bool DecodeTexture(const ptx::Op& op);

  // decode_memory.cc
  bool DecodeLoad(const ptx::Op& op);
  bool DecodeStore(const ptx::Op& op);
  bool DecodeKernelParam(const ptx::Op& op, const Address& address);
  bool DecodeAtomic(const ptx::Op& op);
  bool DataOperands(const ptx::Op& op, const ptx::Operand& data, bool store, uint32_t* slots);
  void PutAddress(const ptx::Op& op, const Address& address, Insn* insn);
  void NoteOrdering(const ptx::Op& op);

  // decode_control.cc
  bool DecodeControl(const ptx::Op& op);
  bool DecodeBranch();
  bool DecodeBranchTable();
  bool DecodeCall();
  bool CallTable(const ptx::Operand* list, std::vector<uint32_t>* table);
  bool DecodeBarrier(const ptx::Op& op);

  KernelBuilder& builder_;
  const ptx::Function& function_;
  const ptx::Body& body_;
  Program& program_;
  std::string* error_;
  const ptx::Instruction* now_ = nullptr;
  bool use_guard_ = false;
  std::vector<uint32_t> register_slot_;
  std::vector<uint8_t> definitions_;  // how often each register is written, up to 2
  std::map<std::pair<uint64_t, bool>, uint32_t> constants_;
  std::map<std::pair<Special, bool>, uint32_t> specials_;
  std::unordered_map<const ptx::Variable*, uint32_t> local_offset_, param_offset_;
  std::vector<uint32_t> code_at_;  // of each parsed instruction
  struct Fixup {
    uint32_t code = 0;
    uint32_t label = 0;
  };
  std::vector<Fixup> fixups_;
  struct TableFixup {
    uint32_t index = 0, label = 0;
  };
  std::vector<TableFixup> table_fixups_;
  std::vector<LateCopy> late_;
  std::vector<bool> skipped_;  // instructions that became aliases
  uint32_t sink_ = 0;
};

}  // namespace atp::sim::exec
