// SPDX-License-Identifier: Apache-2.0
// Functions that the machine provides to device code: vprintf, __assertfail, malloc, free.
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "sim/exec/decoder.h"
#include "sim/exec/worker.h"

namespace atp::sim::exec {
namespace {

constexpr size_t kMaxString = 4096;
constexpr size_t kMaxPrinted = 64 << 10;  // of one call of printf

// Reads memory as one lane sees it, in any space. The instruction counts as a generic access.
class LaneReader {
 public:
  LaneReader(Warp& warp, const Insn* insn, int lane) : warp_(warp), insn_(*insn), lane_(lane) {
    insn_.aux = 1;
    insn_.cache = warp.block->launch->code->cache_count;  // the spare cache
    origin_ = insn;
  }
  bool Read(uint64_t address, void* to, uint32_t bytes) {
    uint8_t* host = Host(address, bytes);
    if (host == nullptr) return false;
    std::memcpy(to, host, bytes);
    return true;
  }
  bool ReadString(uint64_t address, std::string* text) {
    while (text->size() < kMaxString) {
      char c = 0;
      if (!Read(address++, &c, 1)) return false;
      if (c == '\0') return true;
      text->push_back(c);
    }
    return true;
  }

 private:
  uint8_t* Host(uint64_t address, uint32_t bytes) {
    // LaneAddress reports failures by the instruction's place in the code, so the copy must not be
    // shown to it.
    AccessCache* cache = warp_.caches + insn_.cache;
    uint64_t tag = address >> kTagShift, offset = address & kOffsetMask;
    if (tag == kTagMemory || tag == kTagInternal) {
      if (!ResolveRegion(warp_, cache, address, bytes, false)) return Bad(address);
      TouchRead(warp_, cache, address, address + bytes);
      return reinterpret_cast<uint8_t*>(address + static_cast<uint64_t>(cache->delta));
    }
    Block& block = *warp_.block;
    if (tag == kTagShared && offset <= block.shared_bytes && block.shared_bytes - offset >= bytes)
      return block.shared + offset;
    if (tag == kTagLocal && offset <= warp_.local_stride && warp_.local_stride - offset >= bytes) {
      return warp_.local + static_cast<size_t>(lane_) * warp_.local_stride + offset;
    }
    return Bad(address);
  }
  uint8_t* Bad(uint64_t address) {
    FailAddress(warp_, origin_, ExecStatus::kIllegalAddress, "generic", address);
    return nullptr;
  }

  Warp& warp_;
  Insn insn_;
  const Insn* origin_;
  int lane_;
};

// Arguments of a builtin: triples of the call table, as the decoder has written them.
uint64_t Argument(const Warp& warp, const Insn* insn, uint32_t index, int lane) {
  const uint32_t* table = warp.frame->program->table + insn->aux;
  if (index >= table[0]) return 0;
  const uint32_t* entry = table + 1 + 3 * index;
  uint64_t value = 0;
  const uint8_t* from = warp.regs;
  switch (entry[0]) {
    case Formal::kStack:
      from += static_cast<size_t>(lane) * warp.frame->program->param_stride + entry[1];
      break;
    case Formal::kWide:
      from += entry[1] + static_cast<uint32_t>(lane) * 8;
      break;
    default:
      from += entry[1] + static_cast<uint32_t>(lane) * 4;
      break;
  }
  std::memcpy(&value, from, std::min<uint32_t>(entry[2], 8));
  return value;
}

void SetResult(Warp& warp, const Insn* insn, int lane, uint64_t value) {
  const uint32_t* table = warp.frame->program->table + insn->aux;
  table += 1 + 3 * table[0];
  if (table[0] == 0) return;
  const uint32_t* entry = table + 1;
  uint8_t* to = warp.regs;
  switch (entry[0]) {
    case Formal::kStack:
      to += static_cast<size_t>(lane) * warp.frame->program->param_stride + entry[1];
      break;
    case Formal::kWide:
      to += entry[1] + static_cast<uint32_t>(lane) * 8;
      break;
    default:
      to += entry[1] + static_cast<uint32_t>(lane) * 4;
      break;
  }
  std::memcpy(to, &value, std::min<uint32_t>(entry[2], 8));
}

// One conversion of a format string. Arguments are packed as in C varargs: 4 bytes for int, 8 for
// the rest, aligned.
class Printer {
 public:
  Printer(LaneReader* reader, uint64_t arguments, std::string* out)
      : reader_(*reader), at_(arguments), out_(*out) {}

  bool Run(const std::string& format) {
    for (size_t k = 0; k < format.size() && out_.size() < kMaxPrinted; ++k) {
      if (format[k] != '%') {
        out_.push_back(format[k]);
        continue;
      }
      if (!Conversion(format, &k)) return false;
    }
    return true;
  }

 private:
  template <class T>
  bool Next(T* value) {
    at_ = (at_ + sizeof(T) - 1) & ~uint64_t{sizeof(T) - 1};
    bool ok = reader_.Read(at_, value, sizeof(T));
    at_ += sizeof(T);
    return ok;
  }
  template <class T>
  void Print(const std::string& spec, T value) {
    char text[512];
    int n = std::snprintf(text, sizeof(text), spec.c_str(), value);
    if (n > 0) out_.append(text, std::min<size_t>(static_cast<size_t>(n), sizeof(text) - 1));
  }

  bool Number(std::string* spec, int limit) {  // "*"
    int value = 0;
    if (!Next(&value)) return false;
    *spec += std::to_string(std::max(-limit, std::min(limit, value)));
    return true;
  }

  bool Conversion(const std::string& format, size_t* k);
  bool Convert(std::string spec, char kind, int longs);

  LaneReader& reader_;
  uint64_t at_;
  std::string& out_;
};

bool Printer::Conversion(const std::string& format, size_t* k) {
  size_t at = *k + 1;
  std::string spec = "%";
  int longs = 0;
  for (; at < format.size(); ++at) {
    char c = format[at];
    if (c == '*') {
      if (!Number(&spec, 200)) return false;
    } else if (std::strchr("-+ #.", c) != nullptr || (c >= '0' && c <= '9')) {
      spec.push_back(c);
      if (spec.size() > 12) return true;
    } else if (c == 'l' || c == 'j' || c == 'z' || c == 't') {
      longs += c == 'l' ? 1 : 2;
    } else if (c != 'h') {
      break;
    }
  }
  *k = at;
  if (at >= format.size()) return true;
  return Convert(std::move(spec), format[at], longs);
}

bool Printer::Convert(std::string spec, char kind, int longs) {
  // A width such as 999999 would only fill the log; snprintf's buffer limits it.
  switch (kind) {
    case '%':
      out_.push_back('%');
      return true;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
    case 'c':
      if (longs > 0 && kind != 'c') {
        int64_t value = 0;
        if (!Next(&value)) return false;
        Print(spec + "ll" + kind, static_cast<long long>(value));
      } else {
        int value = 0;
        if (!Next(&value)) return false;
        Print(spec + kind, value);
      }
      return true;
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      double value = 0;
      if (!Next(&value)) return false;
      Print(spec + kind, value);
      return true;
    }
    case 'p': {
      uint64_t value = 0;
      if (!Next(&value)) return false;
      Print(spec + 'p', reinterpret_cast<void*>(value));
      return true;
    }
    case 's': {
      uint64_t address = 0;
      std::string text;
      if (!Next(&address)) return false;
      if (address == 0) {
        text = "(null)";
      } else if (!reader_.ReadString(address, &text)) {
        return false;
      }
      Print(spec + 's', text.c_str());
      return true;
    }
    default:
      out_ += spec + kind;
      return true;
  }
}

const Insn* Printf(Warp& warp, const Insn* insn) {
  for (uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    LaneReader reader(warp, insn, lane);
    std::string format, text;
    if (!reader.ReadString(Argument(warp, insn, 0, lane), &format)) return kStop;
    if (!Printer(&reader, Argument(warp, insn, 1, lane), &text).Run(format)) return kStop;
    warp.worker->log += text;
    SetResult(warp, insn, lane, text.size());
  }
  return insn + 1;
}

// Prints as the CUDA runtime does, and ends the launch.
const Insn* AssertFail(Warp& warp, const Insn* insn) {
  int lane = std::countr_zero(warp.mask);
  LaneReader reader(warp, insn, lane);
  std::string message, file, function;
  if (!reader.ReadString(Argument(warp, insn, 0, lane), &message) ||
      !reader.ReadString(Argument(warp, insn, 1, lane), &file) ||
      !reader.ReadString(Argument(warp, insn, 3, lane), &function)) {
    return kStop;
  }
  const Block& block = *warp.block;
  const LaunchConfig& config = block.launch->config;
  uint32_t thread = warp.index * kLanes + static_cast<uint32_t>(lane);
  uint32_t x = thread % config.block[0], y = thread / config.block[0] % config.block[1];
  uint32_t z = thread / config.block[0] / config.block[1];
  char place[160];
  std::snprintf(place, sizeof(place), "block: [%u,%u,%u], thread: [%u,%u,%u]", block.id[0],
                block.id[1], block.id[2], x, y, z);
  std::string line = file + ":" +
                     std::to_string(static_cast<uint32_t>(Argument(warp, insn, 2, lane))) + ": " +
                     function + ": " + place + " Assertion `" + message + "` failed.";
  warp.worker->log += line + "\n";
  return Fail(warp, insn, ExecStatus::kAssert, line.c_str());
}

const Insn* Malloc(Warp& warp, const Insn* insn) {
  for (uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    int lane = std::countr_zero(rest);
    SetResult(warp, insn, lane,
              warp.block->launch->internal->Allocate(Argument(warp, insn, 0, lane)));
  }
  return insn + 1;
}

const Insn* Free(Warp& warp, const Insn* insn) {
  for (uint32_t rest = warp.mask; rest != 0; rest &= rest - 1) {
    uint64_t address = Argument(warp, insn, 0, std::countr_zero(rest));
    if (address != 0 && !warp.block->launch->internal->Release(address)) {
      return FailAddress(warp, insn, ExecStatus::kIllegalAddress, "heap", address);
    }
  }
  return insn + 1;
}

}  // namespace

const Insn* CallBuiltin(Warp& warp, const Insn* insn) {
  switch (static_cast<Builtin>(insn->aux2)) {
    case Builtin::kPrintf:
      return Printf(warp, insn);
    case Builtin::kAssertFail:
      return AssertFail(warp, insn);
    case Builtin::kMalloc:
      return Malloc(warp, insn);
    case Builtin::kFree:
      return Free(warp, insn);
    case Builtin::kNone:
      break;
  }
  return Fail(warp, insn, ExecStatus::kUnsupported, "call of an unknown function");
}

}  // namespace atp::sim::exec
