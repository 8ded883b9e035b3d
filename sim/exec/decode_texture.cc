// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces: `tex.2d.v4.f32.f32 {r, g, b, a}, [object, {x, y}]`,
// `suld.b.2d.b32.trap {d}, [object, {x, y}]`, `sust.b.2d.b32.trap [object, {x, y}], {d}`.
#include "sim/exec/decoder.h"
#include "sim/exec/texture.h"

namespace atp::sim::exec {

using ptx::Base;
using ptx::Mod;
using ptx::Operand;
using ptx::Type;

bool Decoder::DecodeTexture(const ptx::Op& op) {
  const Handler handler = builder_.variant().pick(op, Form{});
  if (handler == nullptr) return Fail("unsupported opcode " + std::string(op.text));
  const bool store = op.base == Base::kSust, is_texture = op.base == Base::kTex;
  if (arg_count() != 2) return Fail("wrong number of operands");
  const Operand& place = Arg(store ? 0 : 1);
  const Operand& data = Arg(store ? 1 : 0);
  if (place.kind != Operand::Kind::kAddress || place.count != 2)
    return Fail("object and coordinates expected in brackets");
  const Operand& object = Element(place, 0);
  const Operand& coordinates = Element(place, 1);
  if (object.kind != Operand::Kind::kRegister || !IsWideRegister(object.index))
    return Fail("texture and surface references are not supported, only objects");
  Type type = op.types[0];
  const uint32_t part = static_cast<uint32_t>(ptx::TypeBytes(type));
  if (type == Type::kB8) type = Type::kB16;  // bytes come in 16-bit registers
  std::vector<uint32_t> table;
  if (!VectorTable(data, type, !store, &table)) return false;
  if (table[0] != op.vector) return Fail("vector width does not fit");
  const size_t second = table.size();
  const Type index = is_texture ? op.types[1] : Type::kB32;
  if (!VectorTable(coordinates, index, false, &table)) return false;
  const int dimensions = DimensionsOf(op);
  if (static_cast<int>(table[second]) < dimensions) return Fail("too few coordinates");
  uint32_t object_slot = 0;
  if (!Source(object, Type::kB64, &object_slot)) return false;
  const auto table_at = static_cast<int64_t>(program_.operands.size());
  program_.operands.insert(program_.operands.end(), table.begin(), table.end());
  Insn& insn = Emit(handler);
  insn.imm = table_at;
  insn.r[1] = object_slot;
  insn.r[3] = static_cast<uint32_t>(dimensions);
  insn.aux2 = is_texture ? uint32_t{index == Type::kS32} : part * op.vector;
  insn.r[2] = op.Has(Mod::kClamp) ? 1 : op.Has(Mod::kZero) ? 2 : 0;
  insn.cache = builder_.NewCache();
  FinishDestinations();
  return true;
}

}  // namespace atp::sim::exec
