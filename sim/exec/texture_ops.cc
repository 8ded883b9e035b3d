// SPDX-License-Identifier: Apache-2.0
// The instructions tex, suld and sust, lane by lane. Compiled once: they gain nothing from wide
// registers. Table = count and slots of the data, count and slots of the coordinates; r[1] = the
// object; r[2] = what happens outside a surface; r[3] = dimensions; aux2 = bytes of an element of a
// surface, or whether a texture is read by index.
#include <algorithm>
#include <cstring>

#include "sim/exec/texture.h"
#include "sim/exec/worker.h"

namespace atp::sim::exec {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

struct Slots {
  const uint32_t* list;
  uint32_t count;
};

Slots DataSlots(const Warp& warp, const Insn* insn) {
  const uint32_t* table = warp.frame->program->table + insn->imm;
  return {table + 1, table[0]};
}

Slots CoordinateSlots(const Warp& warp, const Insn* insn) {
  const Slots data = DataSlots(warp, insn);
  return {data.list + data.count + 1, data.list[data.count]};
}

uint32_t* Narrow(const Warp& warp, uint32_t slot, int lane) {
  return reinterpret_cast<uint32_t*>(warp.regs + slot) + lane;
}

uint64_t* Wide(const Warp& warp, uint32_t slot, int lane) {
  return reinterpret_cast<uint64_t*>(warp.regs + slot) + lane;
}

// The object that a lane names; fails the launch when there is none of that kind and shape.
bool FindObject(Warp& warp, const Insn* insn, int lane, bool surface, Texture* texture) {
  const uint64_t handle = *Wide(warp, insn->r[1], lane);
  const int dimensions = static_cast<int>(insn->r[3]);
  if (warp.block->launch->memory->FindTexture(handle, texture) && texture->is_surface == surface &&
      texture->dimensions == dimensions)
    return true;
  Fail(warp, insn, ExecStatus::kIllegalAddress,
       surface ? "no such surface object, or one of other dimensions"
               : "no such texture object, or one of other dimensions");
  return false;
}

// Elements of a texture or surface are checked and noted like any access to global memory.
uint8_t* Access(Warp& warp, const Insn* insn, int lane, uint64_t address, uint32_t bytes,
                bool write) {
  uint8_t* host = LaneAddress(warp, insn, lane, address, bytes, !write, write);
  if (host != nullptr) warp.sectors += ((address + bytes - 1) >> 5) - (address >> 5) + 1;
  return host;
}

const Insn* FetchTexture(Warp& warp, const Insn* insn) {
  const Slots data = DataSlots(warp, insn), coordinates = CoordinateSlots(warp, insn);
  for (uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    Texture texture;
    if (!FindObject(warp, insn, lane, false, &texture)) return kStop;
    uint32_t at[3] = {0, 0, 0}, result[4];
    for (uint32_t d = 0; d < insn->r[3] && d < coordinates.count; ++d)
      at[d] = *Narrow(warp, coordinates.list[d], lane);
    // An element of four channels is read by its channels: it need not be aligned as a whole.
    const TexelReader read = [&](uint64_t address, uint32_t bytes) -> const uint8_t* {
      const uint32_t step = std::min(bytes, texture.channel_bytes());
      uint8_t* first = Access(warp, insn, lane, address, step, false);
      if (first == nullptr) return nullptr;
      return bytes == step ||
                     Access(warp, insn, lane, address + bytes - step, step, false) != nullptr
                 ? first
                 : nullptr;
    };
    if (!Sample(texture, at, insn->aux2 != 0, read, result)) return kStop;
    for (uint32_t c = 0; c < data.count; ++c) *Narrow(warp, data.list[c], lane) = result[c];
  }
  return insn + 1;
}

enum class Outside : uint32_t { kTrap, kClamp, kZero };

// Byte address of a surface access; 0 when it is outside and reads as nothing.
bool SurfaceAddress(Warp& warp, const Insn* insn, const Texture& surface, int lane,
                    uint64_t* address) {
  const Slots coordinates = CoordinateSlots(warp, insn);
  const auto outside = static_cast<Outside>(insn->r[2]);
  const uint32_t bytes = insn->aux2;
  const uint64_t steps[3] = {1, surface.row_pitch, surface.slice_pitch};
  *address = surface.base;
  for (uint32_t d = 0; d < insn->r[3]; ++d) {
    int64_t at = static_cast<int32_t>(*Narrow(warp, coordinates.list[d], lane));
    const int64_t last = d == 0 ? int64_t{surface.extent[0]} * surface.element_bytes() - bytes
                                : int64_t{surface.extent[d]} - 1;
    if (at < 0 || at > last) {
      if (outside == Outside::kTrap) {
        Fail(warp, insn, ExecStatus::kTrap, "surface access outside");
        return false;
      }
      if (outside == Outside::kZero) {
        *address = 0;
        return true;
      }
      at = at < 0 ? 0 : last;
    }
    *address += static_cast<uint64_t>(at) * steps[d];
  }
  return true;
}

template <bool kStore>
const Insn* AccessSurface(Warp& warp, const Insn* insn) {
  const Slots data = DataSlots(warp, insn);
  const uint32_t part = insn->aux2 / data.count;  // bytes of one register
  for (uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    Texture surface;
    uint64_t address = 0;
    if (!FindObject(warp, insn, lane, true, &surface) ||
        !SurfaceAddress(warp, insn, surface, lane, &address))
      return kStop;
    for (uint32_t c = 0; c < data.count; ++c) {
      uint64_t value = 0;
      uint8_t* host = nullptr;
      if (address != 0) {
        host = Access(warp, insn, lane, address + c * part, part, kStore);
        if (host == nullptr) return kStop;
      }
      if (kStore) {
        if (host == nullptr) continue;
        if (part == 8) {
          std::memcpy(host, Wide(warp, data.list[c], lane), part);
        } else {
          std::memcpy(host, Narrow(warp, data.list[c], lane), part);
        }
        continue;
      }
      if (host != nullptr) std::memcpy(&value, host, part);
      if (part == 8) {
        *Wide(warp, data.list[c], lane) = value;
      } else {
        *Narrow(warp, data.list[c], lane) = static_cast<uint32_t>(value);
      }
    }
  }
  return insn + 1;
}

}  // namespace

int DimensionsOf(const ptx::Op& op) {
  return op.Has(Mod::k1d) ? 1 : op.Has(Mod::k2d) ? 2 : op.Has(Mod::k3d) ? 3 : 0;
}

Handler PickTexture(const ptx::Op& op) {
  if (DimensionsOf(op) == 0) return nullptr;
  if (op.base == Base::kTex) {
    const Type d = op.types[0], c = op.types[1];
    const bool known = op.type_count == 2 && op.vector == 4 && op.mods.count() == 1 &&
                       (d == Type::kF32 || d == Type::kS32 || d == Type::kU32) &&
                       (c == Type::kF32 || c == Type::kS32);
    return known ? FetchTexture : nullptr;
  }
  const Type type = op.type();
  const bool bits =
      type == Type::kB8 || type == Type::kB16 || type == Type::kB32 || type == Type::kB64;
  if (op.type_count != 1 || !bits || !op.Has(Mod::kB) ||
      !op.HasAny({Mod::kTrapOutside, Mod::kClamp, Mod::kZero}))
    return nullptr;
  return op.base == Base::kSust ? AccessSurface<true> : AccessSurface<false>;
}

}  // namespace atp::sim::exec
