// SPDX-License-Identifier: Apache-2.0
// Real nvcc output against CPU references, with every build of the handlers.
#include <algorithm>
#include <cmath>
#include <random>

#include "tests/sim/exec/support.h"

namespace atp::sim {
namespace {

class Kernels : public EachVariant {
 protected:
  void SetUp() override {
    EachVariant::SetUp();
    module_ = MustLoad(ReadText(std::string(ATP_PTX_DIR) + "/kernels.ptx"));
    ASSERT_NE(module_, nullptr);
    globals_ = BindGlobals(module_.get(), &memory_);
  }
  ExecResult Run(const std::string& kernel, const LaunchConfig& config, const Params& params) {
    log_.clear();
    return module_->Execute(kernel, config, params.bytes, memory_, &log_);
  }
  void MustRun(const std::string& kernel, const LaunchConfig& config, const Params& params) {
    ExecResult result = Run(kernel, config, params);
    ASSERT_EQ(result.status, ExecStatus::kOk) << result.message;
  }
  static std::vector<float> RandomFloats(size_t n, float low, float high, unsigned seed = 1) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> distribution(low, high);
    std::vector<float> values(n);
    for (float& v : values) v = distribution(random);
    return values;
  }

  TestMemory memory_;
  std::unique_ptr<Module> module_;
  std::map<std::string, uint64_t> globals_;
  std::string log_;
};
ATP_FOR_EACH_VARIANT(Kernels);

TEST_P(Kernels, VectorAddHandlesATailThatIsNotAWholeWarp) {
  constexpr int kN = 1003;
  std::vector<float> a = RandomFloats(kN, -5, 5, 1), b = RandomFloats(kN, -5, 5, 2);
  uint64_t out = memory_.Put(std::vector<float>(kN));
  MustRun("VectorAdd", Grid(8, 128), Params(memory_.Put(a), memory_.Put(b), out, kN));
  for (int i = 0; i < kN; ++i) ASSERT_EQ(memory_.As<float>(out)[i], a[i] + b[i]) << i;
}

TEST_P(Kernels, TiledProductEqualsFusedSumsInOrder) {
  constexpr int kN = 64;
  std::vector<float> a = RandomFloats(kN * kN, -1, 1, 1), b = RandomFloats(kN * kN, -1, 1, 2);
  uint64_t out = memory_.Put(std::vector<float>(kN * kN));
  LaunchConfig config = Grid(4, 16);
  config.grid[1] = 4;
  config.block[1] = 16;
  MustRun("Sgemm", config, Params(memory_.Put(a), memory_.Put(b), out, kN));
  for (int r = 0; r < kN; ++r) {
    for (int c = 0; c < kN; ++c) {
      float sum = 0;
      for (int k = 0; k < kN; ++k) sum = std::fma(a[r * kN + k], b[k * kN + c], sum);
      ASSERT_EQ(memory_.As<float>(out)[r * kN + c], sum);
    }
  }
}

TEST_P(Kernels, ElementaryFunctionsAreCloseToTheHosts) {
  constexpr int kN = 1000;
  std::vector<float> x = RandomFloats(kN, -8, 8);
  uint64_t out = memory_.Put(std::vector<float>(8 * kN));
  MustRun("Elementwise", Grid(8, 128), Params(memory_.Put(x), out, kN));
  for (int i = 0; i < kN; ++i) {
    double v = x[i];
    double expected[8] = {std::exp(v),
                          std::log(std::fabs(v) + 0.1f),
                          std::tanh(v),
                          1 / std::sqrt(std::fabs(v) + 0.5),
                          std::sqrt(std::fabs(v)),
                          v / (1 + std::fabs(v)),
                          std::sin(v) + std::cos(v),
                          std::pow(std::fabs(v) + 0.01, 1.7)};
    for (int k = 0; k < 8; ++k) {
      ASSERT_NEAR(memory_.As<float>(out)[8 * i + k], expected[k],
                  1e-6 + 2e-6 * std::fabs(expected[k]))
          << "function " << k << " of " << v;
    }
  }
}

TEST_P(Kernels, SoftmaxRowsAddUpToOne) {
  constexpr int kRows = 5, kColumns = 300;
  std::vector<float> x = RandomFloats(kRows * kColumns, -4, 4);
  uint64_t out = memory_.Put(std::vector<float>(kRows * kColumns));
  MustRun("Softmax", Grid(kRows, 128), Params(memory_.Put(x), out, kColumns));
  for (int r = 0; r < kRows; ++r) {
    double largest = -1e9, sum = 0;
    for (int c = 0; c < kColumns; ++c) largest = std::max<double>(largest, x[r * kColumns + c]);
    for (int c = 0; c < kColumns; ++c) sum += std::exp(x[r * kColumns + c] - largest);
    for (int c = 0; c < kColumns; ++c) {
      ASSERT_NEAR(memory_.As<float>(out)[r * kColumns + c],
                  std::exp(x[r * kColumns + c] - largest) / sum, 1e-7);
    }
  }
}

TEST_P(Kernels, HistogramCountsEveryByte) {
  constexpr int kN = 5000;
  std::mt19937 random(3);
  std::vector<uint8_t> data(kN);
  std::vector<unsigned> expected(256);
  for (uint8_t& v : data) v = static_cast<uint8_t>(random() % 256), ++expected[v];
  uint64_t bins = memory_.Put(std::vector<unsigned>(256));
  MustRun("Histogram", Grid(6, 128), Params(memory_.Put(data), bins, kN));
  EXPECT_EQ(memory_.Get<unsigned>(bins, 256), expected);
}

TEST_P(Kernels, RecursionOfDifferentDepthPerLane) {
  uint64_t out = memory_.Put(std::vector<int>(64));
  MustRun("Recursion", Grid(1, 64), Params(out));
  int fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory_.As<int>(out)[i], fibonacci[i % 12]);
}

TEST_P(Kernels, IndirectCallsGoWhereEachLanePoints) {
  uint64_t out = memory_.Put(std::vector<int>(32));
  MustRun("IndirectCalls", Grid(1, 32), Params(out));
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(memory_.As<int>(out)[i], i % 3 == 0 ? i + 1 : i % 3 == 1 ? 2 * i : i * i);
}

TEST_P(Kernels, LocalArraysAreEachLanesOwn) {
  constexpr int kN = 300;
  std::mt19937 random(4);
  std::vector<int> in(kN);
  for (int& v : in) v = static_cast<int>(random());
  uint64_t out = memory_.Put(std::vector<int>(kN));
  MustRun("LocalArrays", Grid(3, 128), Params(memory_.Put(in), out, kN));
  for (int i = 0; i < kN; ++i) {
    std::vector<int> values;
    for (int k = 0; k < 32; ++k) values.push_back(in[(i * 7 + k * 13) % kN]);
    std::sort(values.begin(), values.end());
    ASSERT_EQ(memory_.As<int>(out)[i], values[i % 32]) << i;
  }
}

TEST_P(Kernels, GlobalsConstantsAndDynamicSharedMemory) {
  uint64_t out = memory_.Put(std::vector<float>(64));
  for (int k = 0; k < 8; ++k)
    memory_.As<float>(globals_.at("factors"))[k] = 0.5f * static_cast<float>(k);
  MustRun("Globals", Grid(1, 64, 64 * 4), Params(out));
  for (int i = 0; i < 64; ++i) {
    int j = 63 - i;
    float expected = 0.5f * static_cast<float>(j % 8) * static_cast<float>(1 << (j % 4)) + 2.0f;
    EXPECT_EQ(memory_.As<float>(out)[i], expected);
  }
  EXPECT_EQ(*memory_.As<unsigned>(globals_.at("counter")), 1u);
}

struct alignas(16) Packed {
  float a[4];
  int b[2];
  short c;
  char d;
  double e;
};
TEST_P(Kernels, StructuresByValueAndVectorAccess) {
  Packed p{{1, 2, 3, 4}, {5, 6}, 7, 8, 2.5};
  std::vector<float> in = RandomFloats(64 * 4, -1, 1);
  uint64_t out = memory_.Put(std::vector<float>(64 * 4)),
           extra = memory_.Put(std::vector<double>(64));
  MustRun("Structs", Grid(1, 64), Params(p, memory_.Put(in), out, extra));
  const float* v = memory_.As<float>(out);
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(v[4 * i], in[4 * i] + 4.0f);
    EXPECT_EQ(v[4 * i + 1], in[4 * i + 1] * 6.0f);
    EXPECT_EQ(v[4 * i + 2], in[4 * i + 2] - 7.0f);
    EXPECT_EQ(v[4 * i + 3], in[4 * i + 3] + 8.0f);
    EXPECT_EQ(memory_.As<double>(extra)[i], 2.5 * i + 1.0);
  }
}

TEST_P(Kernels, IntegerOperationsAreExact) {
  constexpr int kN = 500;
  std::mt19937 random(5);
  std::vector<int> a(kN), b(kN);
  for (int& v : a) v = static_cast<int>(random());
  for (int& v : b) v = static_cast<int>(random()) >> (random() % 28);
  uint64_t out = memory_.Put(std::vector<long long>(10 * kN));
  MustRun("Integers", Grid(4, 128), Params(memory_.Put(a), memory_.Put(b), out, kN));
  for (int i = 0; i < kN; ++i) {
    const long long* o = memory_.As<long long>(out) + 10 * i;
    long long x = a[i], y = b[i] ? b[i] : 1;
    unsigned long long u = static_cast<unsigned long long>(x) * 0x9e3779b97f4a7c15ull;
    ASSERT_EQ(o[0], x / y);
    ASSERT_EQ(o[1], x % y);
    ASSERT_EQ(o[2], static_cast<long long>(u / static_cast<unsigned long long>(y | 1)));
    ASSERT_EQ(o[3], static_cast<long long>(a[i]) * b[i] >> 32);
    unsigned ua = static_cast<unsigned>(a[i]), ub = static_cast<unsigned>(b[i]);
    int clz = ub == 0 ? 32 : __builtin_clz(ub);
    ASSERT_EQ(o[4], __builtin_popcount(ua) + clz * 100 + __builtin_ffs(a[i]) * 10000);
    unsigned reversed = 0;
    for (int k = 0; k < 32; ++k) reversed |= (ua >> k & 1) << (31 - k);
    ASSERT_EQ(o[5], static_cast<long long>(reversed));
    unsigned long long both = static_cast<unsigned long long>(ub) << 32 | ua;
    unsigned permuted = 0;
    for (int k = 0, s[] = {0, 4, 2, 6}; k < 4; ++k)
      permuted |= static_cast<unsigned>(both >> (8 * s[k]) & 0xff) << (8 * k);
    ASSERT_EQ(o[6], static_cast<long long>(permuted));
    ASSERT_EQ(o[7], static_cast<long long>(static_cast<unsigned>(both << (i & 31) >> 32)));
    int dot = 7;
    for (int k = 0; k < 4; ++k)
      dot += static_cast<int8_t>(ua >> (8 * k)) * static_cast<int8_t>(ub >> (8 * k));
    ASSERT_EQ(o[8], dot);
    ASSERT_EQ(o[9], static_cast<long long>(static_cast<unsigned __int128>(u) *
                                               (u ^ static_cast<unsigned long long>(x)) >>
                                           64));
  }
}

TEST_P(Kernels, LanesThatPartMeetAgain) {
  std::vector<int> in(32);
  for (int i = 0; i < 32; ++i) in[i] = i * 7 + 1;
  uint64_t out = memory_.Put(std::vector<int>(32));
  MustRun("Divergence", Grid(1, 32), Params(memory_.Put(in), out));
  int steps[32];
  unsigned here = 0;
  for (int i = 0; i < 32; ++i) {
    int v = in[i];
    steps[i] = 0;
    while (v != 1 && steps[i] < 1000) v = v % 2 ? 3 * v + 1 : v / 2, ++steps[i];
    here |= static_cast<unsigned>(steps[i] % 2) << i;
    if (i % 5 == 0) steps[i] += 1;
    if (i % 5 == 1) steps[i] *= 2;
    if (i % 5 == 2) steps[i] -= 3;
    if (i % 5 == 3) steps[i] ^= 5;
  }
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(memory_.As<int>(out)[i], steps[i] + steps[(i + 1) % 32] + __builtin_popcount(here))
        << i;
  }
}

TEST_P(Kernels, WarpOperationsSeeAllLanes) {
  std::vector<int> in(32);
  for (int i = 0; i < 32; ++i) in[i] = (i * 37) % 101;
  uint64_t out = memory_.Put(std::vector<int>(32));
  MustRun("WarpOperations", Grid(1, 32), Params(memory_.Put(in), out));
  int sum = 0, low = 1000, any = 0, all = 1, same[4] = {};
  for (int v : in) sum += v, low = std::min(low, v), any |= v > 90, all &= v >= 0, ++same[v % 4];
  for (int i = 0; i < 32; ++i) {
    int up = i % 16 >= 3 ? in[i - 3] : in[i];
    EXPECT_EQ(memory_.As<int>(out)[i],
              sum + 3 * low + 5 * up + 7 * any + 11 * all + 13 * same[in[i] % 4] + 17 + 1)
        << i;
  }
}

TEST_P(Kernels, BarriersReduce) {
  uint64_t out = memory_.Put(std::vector<int>(96));
  MustRun("Barriers", Grid(1, 96), Params(out));
  for (int i = 0; i < 96; ++i) EXPECT_EQ(memory_.As<int>(out)[i], 32 * 100 + 10);
}

TEST_P(Kernels, PrintsAndAsserts) {
  LaunchConfig config = Grid(2, 32);
  MustRun("PrintAndAssert", config, Params(1000));
  EXPECT_EQ(
      log_,
      "block 0 thread 0: text 0.00 1099511627776 x\nblock 0 thread 1: text 1.50 1099511627776 x\n"
      "block 1 thread 0: text 0.00 1099511627776 x\nblock 1 thread 1: text 1.50 1099511627776 x\n");
  ExecResult result = Run("PrintAndAssert", config, Params(10));
  EXPECT_EQ(result.status, ExecStatus::kAssert);
  EXPECT_NE(
      log_.find("block: [0,0,0], thread: [10,0,0] Assertion `(int)threadIdx.x < limit` failed."),
      std::string::npos)
      << log_;
}

TEST_P(Kernels, LanesThatWaitForALockLetItsOwnerRun) {
  uint64_t lock = memory_.Put(std::vector<int>(1)), value = memory_.Put(std::vector<int>(1));
  MustRun("SpinLock", Grid(3, 64), Params(lock, value));
  EXPECT_EQ(*memory_.As<int>(value), 3 * 64);
}

TEST_P(Kernels, BlocksThatWaitForLaterOnesLetThemRun) {
  uint64_t flags = memory_.Put(std::vector<int>(6)), out = memory_.Put(std::vector<int>(6));
  MustRun("WaitForNext", Grid(6, 32), Params(flags, out));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(memory_.As<int>(out)[i], 6 - i);
}

TEST_P(Kernels, CooperativeGridsSynchronise) {
  constexpr int kN = 4 * 64, kRounds = 5;
  std::vector<int> data(kN);
  for (int i = 0; i < kN; ++i) data[i] = i * i;
  uint64_t address = memory_.Put(data);
  LaunchConfig config = Grid(4, 64);
  config.cooperative = true;
  MustRun("GridSync", config, Params(address, kRounds));
  for (int i = 0; i < kN; ++i) {
    EXPECT_EQ(memory_.As<int>(address)[i], data[(i + kRounds) % kN] + kRounds);
  }
}

TEST_P(Kernels, DeviceHeapGivesDistinctMemory) {
  uint64_t out = memory_.Put(std::vector<int>(64));
  MustRun("DeviceHeap", Grid(1, 64), Params(out));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory_.As<int>(out)[i], 6 * i);
}

TEST_P(Kernels, AccessOutsideAnyAllocationIsIllegal) {
  uint64_t p = memory_.Put(std::vector<float>(64));
  ExecResult result = Run("Wild", Grid(1, 32), Params(p, 1ll << 30));
  EXPECT_EQ(result.status, ExecStatus::kIllegalAddress);
  EXPECT_NE(result.message.find("kernel Wild"), std::string::npos) << result.message;
  EXPECT_NE(result.message.find("st.global."), std::string::npos) << result.message;
  EXPECT_NE(result.message.find("line "), std::string::npos) << result.message;
  EXPECT_EQ(Run("Wild", Grid(1, 32), Params(uint64_t{0}, 0ll)).status, ExecStatus::kIllegalAddress);
  EXPECT_EQ(Run("Wild", Grid(1, 32), Params(p, 40ll)).status, ExecStatus::kIllegalAddress)
      << "runs over the end";
  EXPECT_EQ(Run("Wild", Grid(1, 32), Params(p, 32ll)).status, ExecStatus::kOk);
}

TEST_P(Kernels, OtherFaultsAreReported) {
  uint64_t p = memory_.Put(std::vector<int>(64));
  EXPECT_EQ(Run("Misaligned", Grid(1, 1), Params(p)).status, ExecStatus::kMisalignedAddress);
  EXPECT_EQ(Run("WildShared", Grid(1, 32), Params(p, 0)).status, ExecStatus::kOk);
  EXPECT_EQ(Run("WildShared", Grid(1, 32), Params(p, 1)).status, ExecStatus::kIllegalAddress);
  EXPECT_EQ(Run("WildShared", Grid(1, 32), Params(p, -1)).status, ExecStatus::kIllegalAddress);
  EXPECT_EQ(Run("Trap", Grid(1, 1), Params()).status, ExecStatus::kTrap);
  LaunchConfig config = Grid(1, 32);
  config.max_warp_instructions = 1000000;
  EXPECT_EQ(Run("Forever", config, Params(p)).status, ExecStatus::kInstructionLimit);
  uint64_t constant = memory_.Allocate(128, /*writable=*/false);
  EXPECT_EQ(Run("Wild", Grid(1, 32), Params(constant, 0ll)).status, ExecStatus::kIllegalAddress);
}

}  // namespace
}  // namespace atp::sim
