// SPDX-License-Identifier: Apache-2.0
// Matrix instructions, asynchronous copies and mbarrier.
#include "sim/exec/decoder.h"

namespace atp::sim::exec {

using ptx::Base;
using ptx::Mod;
using ptx::Operand;
using ptx::Type;

namespace {

Type RegisterType(const ptx::Op& op) { return op.type() == Type::kF64 ? Type::kF64 : Type::kB32; }

}  // namespace

// Appends the count and the slots of a vector operand to the side table.
bool Decoder::VectorTable(const Operand& operand, Type type, bool is_destination,
                          std::vector<uint32_t>* table) {
  bool is_vector = operand.kind == Operand::Kind::kVector;
  uint32_t count = is_vector ? operand.count : 1;
  table->push_back(count);
  for (uint32_t k = 0; k < count; ++k) {
    const Operand& element = is_vector ? Element(operand, k) : operand;
    uint32_t slot = 0;
    bool ok = is_destination ? Destination(element, type, &slot) : Source(element, type, &slot);
    if (!ok) return false;
    table->push_back(slot);
  }
  return true;
}

namespace {

// Registers that each matrix of mma needs, by bits of all its elements; a wrong count would read
// beyond the table.
uint32_t RegistersFor(uint32_t elements, uint32_t bits) { return elements * bits / (32 * kLanes); }

uint32_t BitsOf(Type type) {
  if (type == Type::kS4 || type == Type::kU4) return 4;
  return type == Type::kF64
             ? 32
             : static_cast<uint32_t>(ptx::TypeBytes(type)) * 8;  // one double to a register
}

}  // namespace

bool Decoder::CheckMmaTable(const ptx::Op& op, const std::vector<uint32_t>& table) {
  uint32_t m = op.shape_m, n = op.shape_n, k = op.shape_k;
  bool short_form = op.type_count == 2;  // wmma with f16 factors
  Type d = op.types[0], c = op.types[op.type_count - 1], a = short_form ? Type::kF16 : op.types[1];
  uint32_t needed[4] = {RegistersFor(m * n, BitsOf(d)), RegistersFor(m * k, BitsOf(a)),
                        RegistersFor(k * n, BitsOf(a)), RegistersFor(m * n, BitsOf(c))};
  size_t at = 0;
  for (int x = 0; x < 4; ++x) {
    uint32_t count = table[at];
    bool more_is_fine =
        op.base == Base::kWmma && (x == 1 || x == 2);  // f16 factors come in 8 registers always
    if (count < needed[x] || (count > needed[x] && !more_is_fine))
      return Fail("wrong number of registers in a matrix");
    at += count + 1;
  }
  return true;
}

bool Decoder::DecodeMatrix(const ptx::Op& op) {
  Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  std::vector<uint32_t> table;
  Type type = RegisterType(op);
  uint32_t address_arg = UINT32_MAX, aux2 = 0, aux = 0;
  uint32_t stride = 0, source = 0;
  bool is_mma = op.base == Base::kMma || (op.base == Base::kWmma && op.Has(Mod::kMma));
  if (is_mma) {
    if (arg_count() != 4) return Fail("wrong number of operands");
    for (uint32_t x = 0; x < 4; ++x) {
      if (!VectorTable(Arg(x), type, x == 0, &table)) return false;
    }
    if (!CheckMmaTable(op, table)) return false;
    aux = op.shape_k | static_cast<uint32_t>(op.shape_m) << 8;
    aux2 = op.base == Base::kMma ? uint32_t{op.Has(Mod::kSatfinite)}
                                 : op.shape_m | static_cast<uint32_t>(op.shape_n) << 8 |
                                       static_cast<uint32_t>(op.shape_k) << 16;
  } else if (op.base == Base::kMovmatrix) {
    if (arg_count() != 2) return Fail("wrong number of operands");
    if (!VectorTable(Arg(0), Type::kB32, true, &table) || !Source(Arg(1), Type::kB32, &source))
      return false;
  } else {
    bool store = op.base == Base::kStmatrix || op.Has(Mod::kStore),
         is_wmma = op.base == Base::kWmma;
    if (arg_count() < 2 || arg_count() > (is_wmma ? 3u : 2u))
      return Fail("wrong number of operands");
    address_arg = store ? 0 : 1;
    if (!VectorTable(Arg(store ? 1 : 0), Type::kB32, !store, &table)) return false;
    uint32_t rows = op.Has(Mod::kB) ? op.shape_k : op.shape_m,
             columns = op.Has(Mod::kA) ? op.shape_k : op.shape_n;
    bool column_major = op.Has(Mod::kCol);
    aux2 = is_wmma ? rows | columns << 8 | uint32_t{column_major} << 16
                   : uint32_t{op.Has(Mod::kTrans)};
    if (is_wmma) {
      if (table[0] * 32 * kLanes < rows * columns * BitsOf(op.type()))
        return Fail("too few registers for the fragment");
      if (arg_count() == 3) {
        if (!Source(Arg(2), Type::kU32, &stride)) return false;
      } else {
        stride = ConstantSlot(column_major ? rows : columns, false);
      }
    } else {
      uint32_t count = op.Has(Mod::kX4) ? 4 : op.Has(Mod::kX2) ? 2 : 1;
      if (table[0] != count) return Fail("wrong number of registers");
    }
  }
  Address address;
  if (address_arg != UINT32_MAX && !ReadAddress(Arg(address_arg), op, &address)) return false;
  if (address.is_param || address.imm > INT32_MAX || address.imm < INT32_MIN)
    return Fail("unsupported address");
  uint32_t table_at = static_cast<uint32_t>(program_.operands.size());
  program_.operands.insert(program_.operands.end(), table.begin(), table.end());
  Insn& insn = Emit(handler);
  if (address_arg != UINT32_MAX) {
    PutAddress(op, address, &insn);
    insn.r[2] = static_cast<uint32_t>(static_cast<int32_t>(address.imm));
  }
  insn.r[1] = op.base == Base::kMovmatrix ? source : stride;
  insn.imm = table_at;
  insn.aux |= aux;
  insn.aux2 = aux2;
  FinishDestinations();
  return true;
}

// cp.async.ca.shared.global [to], [from], bytes {, bytes to read | predicate to ignore} {, cache
// policy}
bool Decoder::DecodeAsyncCopy(const ptx::Op& op, Handler handler) {
  if (arg_count() < 3 || Arg(2).kind != Operand::Kind::kInteger) return Fail("wrong operands");
  uint64_t bytes = Arg(2).bits;
  if (bytes != 4 && bytes != 8 && bytes != 16) return Fail("cp.async copies 4, 8 or 16 bytes");
  Address to, from;
  if (!ReadAddress(Arg(0), op, &to) || !ReadAddress(Arg(1), op, &from)) return false;
  if (to.is_param || from.is_param || !from.wide || from.imm > INT32_MAX || from.imm < INT32_MIN)
    return Fail("unsupported address");
  uint32_t wanted = ConstantSlot(bytes, false), ignore = 0;
  Fill never;
  never.kind = Fill::Kind::kPredicate;
  ignore = FillSlot(never);
  bool has_policy = op.Has(Mod::kCachePolicy);
  if (arg_count() > 3 + (has_policy ? 1u : 0u)) {
    const Operand& extra = Arg(3);
    bool is_predicate =
        extra.kind == Operand::Kind::kRegister && body_.registers[extra.index] == Type::kPred;
    bool ok = is_predicate ? PredicateSource(extra, &ignore) : Source(extra, Type::kU32, &wanted);
    if (!ok) return false;
  }
  Insn& insn = Emit(handler);
  PutAddress(op, to, &insn);
  insn.r[1] = from.slot;
  insn.r[2] = wanted;
  insn.r[3] = ignore;
  insn.r[4] = static_cast<uint32_t>(static_cast<int32_t>(from.imm));
  insn.aux2 = static_cast<uint32_t>(bytes);
  return true;
}

bool Decoder::DecodeAsync(const ptx::Op& op) {
  Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  bool is_barrier = op.base == Base::kMbarrier || op.Has(Mod::kNoinc);
  if (!is_barrier) {
    if (op.HasAny({Mod::kCommitGroup, Mod::kWaitGroup, Mod::kWaitAll, Mod::kMbarrier})) {
      Emit(handler);
      return true;
    }
    return DecodeAsyncCopy(op, handler);
  }
  uint32_t slots[2] = {NewSlot(8 * kLanes), ConstantSlot(1, false)};
  if (op.Has(Mod::kPendingCount)) {
    if (arg_count() != 2 || !Source(Arg(1), Type::kB64, &slots[1]) ||
        !Destination(Arg(0), Type::kB32, &slots[0])) {
      return Fail("wrong operands");
    }
    Insn& insn = Emit(handler);
    std::copy(slots, slots + 2, insn.r);
    FinishDestinations();
    return true;
  }
  bool waits = op.HasAny({Mod::kTestWait, Mod::kTryWait});
  uint32_t at = 0;
  if (arg_count() > 0 && Arg(0).kind != Operand::Kind::kAddress) {
    if (Arg(0).kind != Operand::Kind::kSink &&
        !Destination(Arg(0), waits ? Type::kPred : Type::kB64, &slots[0]))
      return false;
    at = 1;
  }
  if (at >= arg_count()) return Fail("wrong number of operands");
  Address address;
  if (!ReadAddress(Arg(at), op, &address)) return false;
  if (address.is_param) return Fail("unsupported address");
  if (at + 1 < arg_count()) {
    bool is_state = waits && !op.Has(Mod::kParity);
    if (!Source(Arg(at + 1), is_state ? Type::kB64 : Type::kU32, &slots[1])) return false;
  } else if (waits || op.Has(Mod::kInit)) {
    return Fail("wrong number of operands");
  }
  Insn& insn = Emit(handler);
  PutAddress(op, address, &insn);
  std::copy(slots, slots + 2, insn.r);
  FinishDestinations();
  return true;
}

}  // namespace atp::sim::exec
