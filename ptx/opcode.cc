// SPDX-License-Identifier: Apache-2.0
#include "ptx/opcode.h"

#include <array>
#include <unordered_map>

namespace atp::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  Type type;
  int bytes;
};

constexpr TypeRow kTypes[] = {
    {"pred", Type::kPred, 0},     {"b8", Type::kB8, 1},       {"u8", Type::kU8, 1},
    {"s8", Type::kS8, 1},         {"b16", Type::kB16, 2},     {"u16", Type::kU16, 2},
    {"s16", Type::kS16, 2},       {"f16", Type::kF16, 2},     {"bf16", Type::kBf16, 2},
    {"b32", Type::kB32, 4},       {"u32", Type::kU32, 4},     {"s32", Type::kS32, 4},
    {"f32", Type::kF32, 4},       {"tf32", Type::kTf32, 4},   {"f16x2", Type::kF16x2, 4},
    {"bf16x2", Type::kBf16x2, 4}, {"u16x2", Type::kU16x2, 4}, {"s16x2", Type::kS16x2, 4},
    {"b64", Type::kB64, 8},       {"u64", Type::kU64, 8},     {"s64", Type::kS64, 8},
    {"f64", Type::kF64, 8},       {"b128", Type::kB128, 16},  {"e4m3x2", Type::kE4m3x2, 2},
    {"e5m2x2", Type::kE5m2x2, 2}, {"b1", Type::kB1, 0},       {"u4", Type::kU4, 0},
    {"s4", Type::kS4, 0},
};

using BaseMap = std::unordered_map<std::string_view, Base>;
using ModMap = std::unordered_map<std::string_view, Mod>;

const BaseMap& Bases() {
  static const BaseMap map = {
      {"abs", Base::kAbs},
      {"activemask", Base::kActivemask},
      {"add", Base::kAdd},
      {"addc", Base::kAddc},
      {"and", Base::kAnd},
      {"atom", Base::kAtom},
      {"bar", Base::kBar},
      {"barrier", Base::kBarrier},
      {"bfe", Base::kBfe},
      {"bfi", Base::kBfi},
      {"bfind", Base::kBfind},
      {"bmsk", Base::kBmsk},
      {"bra", Base::kBra},
      {"brev", Base::kBrev},
      {"brkpt", Base::kBrkpt},
      {"brx", Base::kBrx},
      {"call", Base::kCall},
      {"clz", Base::kClz},
      {"cnot", Base::kCnot},
      {"copysign", Base::kCopysign},
      {"cos", Base::kCos},
      {"cp", Base::kCp},
      {"cvt", Base::kCvt},
      {"cvta", Base::kCvta},
      {"discard", Base::kDiscard},
      {"div", Base::kDiv},
      {"dp2a", Base::kDp2a},
      {"dp4a", Base::kDp4a},
      {"elect", Base::kElect},
      {"ex2", Base::kEx2},
      {"exit", Base::kExit},
      {"fence", Base::kFence},
      {"fma", Base::kFma},
      {"fns", Base::kFns},
      {"isspacep", Base::kIsspacep},
      {"ld", Base::kLd},
      {"ldmatrix", Base::kLdmatrix},
      {"ldu", Base::kLdu},
      {"lg2", Base::kLg2},
      {"lop3", Base::kLop3},
      {"mad", Base::kMad},
      {"mad24", Base::kMad24},
      {"madc", Base::kMadc},
      {"match", Base::kMatch},
      {"max", Base::kMax},
      {"mbarrier", Base::kMbarrier},
      {"membar", Base::kMembar},
      {"min", Base::kMin},
      {"mma", Base::kMma},
      {"mov", Base::kMov},
      {"movmatrix", Base::kMovmatrix},
      {"mul", Base::kMul},
      {"mul24", Base::kMul24},
      {"nanosleep", Base::kNanosleep},
      {"neg", Base::kNeg},
      {"not", Base::kNot},
      {"or", Base::kOr},
      {"popc", Base::kPopc},
      {"prefetch", Base::kPrefetch},
      {"prefetchu", Base::kPrefetchu},
      {"prmt", Base::kPrmt},
      {"rcp", Base::kRcp},
      {"red", Base::kRed},
      {"redux", Base::kRedux},
      {"rem", Base::kRem},
      {"ret", Base::kRet},
      {"rsqrt", Base::kRsqrt},
      {"sad", Base::kSad},
      {"selp", Base::kSelp},
      {"set", Base::kSet},
      {"setp", Base::kSetp},
      {"shf", Base::kShf},
      {"shfl", Base::kShfl},
      {"shl", Base::kShl},
      {"shr", Base::kShr},
      {"sin", Base::kSin},
      {"slct", Base::kSlct},
      {"sqrt", Base::kSqrt},
      {"st", Base::kSt},
      {"stmatrix", Base::kStmatrix},
      {"sub", Base::kSub},
      {"subc", Base::kSubc},
      {"suld", Base::kSuld},
      {"sust", Base::kSust},
      {"szext", Base::kSzext},
      {"tanh", Base::kTanh},
      {"testp", Base::kTestp},
      {"tex", Base::kTex},
      {"trap", Base::kTrap},
      {"vote", Base::kVote},
      {"wmma", Base::kWmma},
      {"xor", Base::kXor},
      {"pmevent", Base::kPmevent},
      {"griddepcontrol", Base::kGriddepcontrol},
      {"setmaxnreg", Base::kSetmaxnreg},
      {"applypriority", Base::kApplypriority},
  };
  return map;
}

const ModMap& Mods() {
  static const ModMap map = {
      {"rn", Mod::kRn},
      {"rz", Mod::kRz},
      {"rm", Mod::kRm},
      {"rp", Mod::kRp},
      {"rna", Mod::kRna},
      {"rni", Mod::kRni},
      {"rzi", Mod::kRzi},
      {"rmi", Mod::kRmi},
      {"rpi", Mod::kRpi},
      {"ftz", Mod::kFtz},
      {"sat", Mod::kSat},
      {"approx", Mod::kApprox},
      {"full", Mod::kFull},
      {"lo", Mod::kLo},
      {"hi", Mod::kHi},
      {"wide", Mod::kWide},
      {"cc", Mod::kCc},
      {"eq", Mod::kEq},
      {"ne", Mod::kNe},
      {"lt", Mod::kLt},
      {"le", Mod::kLe},
      {"gt", Mod::kGt},
      {"ge", Mod::kGe},
      {"equ", Mod::kEqu},
      {"neu", Mod::kNeu},
      {"ltu", Mod::kLtu},
      {"leu", Mod::kLeu},
      {"gtu", Mod::kGtu},
      {"geu", Mod::kGeu},
      {"num", Mod::kNum},
      {"nan", Mod::kNan},
      {"NaN", Mod::kNan},
      {"ls", Mod::kLs},
      {"hs", Mod::kHs},
      {"and", Mod::kAnd},
      {"or", Mod::kOr},
      {"xor", Mod::kXor},
      {"add", Mod::kAdd},
      {"min", Mod::kMin},
      {"max", Mod::kMax},
      {"inc", Mod::kInc},
      {"dec", Mod::kDec},
      {"exch", Mod::kExch},
      {"cas", Mod::kCas},
      {"popc", Mod::kPopc},
      {"global", Mod::kGlobal},
      {"shared", Mod::kShared},
      {"shared::cta", Mod::kSharedCta},
      {"shared::cluster", Mod::kSharedCluster},
      {"local", Mod::kLocal},
      {"const", Mod::kConst},
      {"param", Mod::kParam},
      {"param::entry", Mod::kParamEntry},
      {"param::func", Mod::kParamFunc},
      {"nc", Mod::kNc},
      {"volatile", Mod::kVolatile},
      {"relaxed", Mod::kRelaxed},
      {"acquire", Mod::kAcquire},
      {"release", Mod::kRelease},
      {"acq_rel", Mod::kAcqRel},
      {"sc", Mod::kSc},
      {"weak", Mod::kWeak},
      {"mmio", Mod::kMmio},
      {"cta", Mod::kCta},
      {"gpu", Mod::kGpu},
      {"sys", Mod::kSys},
      {"cluster", Mod::kCluster},
      {"gl", Mod::kGl},
      {"ca", Mod::kCa},
      {"cg", Mod::kCg},
      {"cs", Mod::kCs},
      {"cv", Mod::kCv},
      {"lu", Mod::kLu},
      {"wb", Mod::kWb},
      {"wt", Mod::kWt},
      {"L2::cache_hint", Mod::kCachePolicy},
      {"to", Mod::kTo},
      {"uni", Mod::kUni},
      {"sync", Mod::kSync},
      {"aligned", Mod::kAligned},
      {"up", Mod::kUp},
      {"down", Mod::kDown},
      {"bfly", Mod::kBfly},
      {"idx", Mod::kIdx},
      {"all", Mod::kAll},
      {"any", Mod::kAny},
      {"ballot", Mod::kBallot},
      {"shiftamt", Mod::kShiftamt},
      {"l", Mod::kL},
      {"r", Mod::kR},
      {"wrap", Mod::kWrap},
      {"clamp", Mod::kClamp},
      {"f4e", Mod::kF4e},
      {"b4e", Mod::kB4e},
      {"rc8", Mod::kRc8},
      {"ecl", Mod::kEcl},
      {"ecr", Mod::kEcr},
      {"rc16", Mod::kRc16},
      {"trans", Mod::kTrans},
      {"row", Mod::kRow},
      {"col", Mod::kCol},
      {"a", Mod::kA},
      {"b", Mod::kB},
      {"c", Mod::kC},
      {"d", Mod::kD},
      {"load", Mod::kLoad},
      {"store", Mod::kStore},
      {"mma", Mod::kMma},
      {"red", Mod::kRed},
      {"arrive", Mod::kArrive},
      {"wait", Mod::kWait},
      {"init", Mod::kInit},
      {"inval", Mod::kInval},
      {"test_wait", Mod::kTestWait},
      {"try_wait", Mod::kTryWait},
      {"arrive_drop", Mod::kArriveDrop},
      {"pending_count", Mod::kPendingCount},
      {"parity", Mod::kParity},
      {"noComplete", Mod::kNoComplete},
      {"noinc", Mod::kNoinc},
      {"async", Mod::kAsync},
      {"commit_group", Mod::kCommitGroup},
      {"wait_group", Mod::kWaitGroup},
      {"wait_all", Mod::kWaitAll},
      {"mbarrier", Mod::kMbarrier},
      {"satfinite", Mod::kSatfinite},
      {"relu", Mod::kRelu},
      {"xorsign", Mod::kXorsign},
      {"abs", Mod::kAbs},
      {"noftz", Mod::kNoftz},
      {"finite", Mod::kFinite},
      {"infinite", Mod::kInfinite},
      {"number", Mod::kNumber},
      {"notanumber", Mod::kNotanumber},
      {"normal", Mod::kNormal},
      {"subnormal", Mod::kSubnormal},
      {"x1", Mod::kX1},
      {"x2", Mod::kX2},
      {"x4", Mod::kX4},
      {"L1", Mod::kL1},
      {"L2", Mod::kL2},
      {"warp", Mod::kWarp},
      {"1d", Mod::k1d},
      {"2d", Mod::k2d},
      {"3d", Mod::k3d},
      {"zero", Mod::kZero},
      {"trap", Mod::kTrapOutside},
  };
  return map;
}

// "m16n8k16", "m8n8"; digits only after each letter.
bool ParseShape(std::string_view part, Op* op) {
  unsigned values[3] = {0, 0, 0};
  constexpr char kLetters[] = "mnk";
  size_t at = 0;
  int found = 0;
  while (found < 3 && at < part.size() && part[at] == kLetters[found]) {
    size_t digits = 0;
    unsigned value = 0;
    for (++at; at < part.size() && part[at] >= '0' && part[at] <= '9' && digits < 3;
         ++at, ++digits) {
      value = value * 10 + static_cast<unsigned>(part[at] - '0');
    }
    if (digits == 0 || value > 255) return false;
    values[found++] = value;
  }
  if (found < 2 || at != part.size()) return false;
  op->shape_m = static_cast<uint8_t>(values[0]);
  op->shape_n = static_cast<uint8_t>(values[1]);
  op->shape_k = static_cast<uint8_t>(values[2]);
  return true;
}

bool ParsePart(std::string_view part, int* layouts, Op* op) {
  if (Type type = TypeFromName(part); type != Type::kNone) {
    if (op->type_count == Op::kMaxTypes) return false;
    op->types[op->type_count++] = type;
    return true;
  }
  if (part == "v2" || part == "v4" || part == "v8") {
    op->vector = static_cast<uint8_t>(part[1] - '0');
    return true;
  }
  if (part == "row" || part == "col") {
    if (part == "col" && *layouts < 2) op->row_col |= static_cast<uint8_t>(1 << *layouts);
    ++*layouts;
  }
  if (auto found = Mods().find(part); found != Mods().end()) {
    op->mods.set(static_cast<size_t>(found->second));
    return true;
  }
  // Cache hints change speed only: L1::evict_last, L2::128B, L1::no_allocate, ...
  if (part.substr(0, 4) == "L1::" || part.substr(0, 4) == "L2::") {
    op->mods.set(static_cast<size_t>(Mod::kCacheHint));
    return true;
  }
  return ParseShape(part, op);
}

}  // namespace

int TypeBytes(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

bool IsFloat(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kBf16:
    case Type::kF32:
    case Type::kTf32:
    case Type::kF64:
    case Type::kF16x2:
    case Type::kBf16x2:
      return true;
    default:
      return false;
  }
}

bool IsSigned(Type type) {
  return type == Type::kS8 || type == Type::kS16 || type == Type::kS32 || type == Type::kS64;
}

std::string_view TypeName(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.name;
  }
  return "none";
}

Type TypeFromName(std::string_view name) {
  if (name.empty() || name.size() > 6) return Type::kNone;
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return Type::kNone;
}

bool ParseOpcode(std::string_view text, Op* op) {
  *op = Op{};
  op->text = text;
  size_t dot = text.find('.');
  auto base = Bases().find(text.substr(0, dot));
  if (base == Bases().end()) return false;
  op->base = base->second;
  int layouts = 0;
  while (dot != std::string_view::npos) {
    size_t start = dot + 1;
    dot = text.find('.', start);
    std::string_view part = text.substr(start, dot == std::string_view::npos ? dot : dot - start);
    if (!ParsePart(part, &layouts, op)) return false;
  }
  return true;
}

bool IsSharedSpace(const Op& op) {
  return op.HasAny({Mod::kShared, Mod::kSharedCta, Mod::kSharedCluster});
}

}  // namespace atp::ptx
