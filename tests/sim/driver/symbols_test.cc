// SPDX-License-Identifier: Apache-2.0
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <map>
#include <regex>
#include <set>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

struct Row {
  std::string function, suffix;
  int version;
};

// Every (function, version, suffix) that the toolkit's header names.
std::vector<Row> HeaderRows() {
  const std::string text = ReadText(ATP_TEST_CUDA_INCLUDE "/cudaTypedefs.h");
  const std::regex pattern(R"(PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)\()");
  std::vector<Row> rows;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    rows.push_back({(*it)[1], (*it)[3], std::stoi((*it)[2])});
  return rows;
}

void* Driver() {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver;
}

void* Look(const char* name, int version, cuuint64_t flags,
           CUdriverProcAddressQueryResult* status = nullptr) {
  void* address = nullptr;
  cuGetProcAddress(name, &address, version, flags, status);
  return address;
}

constexpr cuuint64_t kTwin = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

TEST(Symbols, EveryFunctionOfTheHeaderResolvesAtItsVersion) {
  const std::vector<Row> rows = HeaderRows();
  ASSERT_GT(rows.size(), 600u);
  for (const Row& row : rows) {
    const cuuint64_t flags = row.suffix.empty() ? CU_GET_PROC_ADDRESS_DEFAULT
                                                : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUdriverProcAddressQueryResult status;
    const void* address = Look(row.function.c_str(), row.version, flags, &status);
    EXPECT_NE(address, nullptr) << row.function << " " << row.version;
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    Dl_info info;
    ASSERT_NE(dladdr(address, &info), 0);
    const std::string symbol = info.dli_sname;
    EXPECT_EQ(symbol.compare(0, row.function.size(), row.function), 0) << symbol;
    const bool is_twin = symbol.find("_pt") != std::string::npos;
    EXPECT_EQ(is_twin, !row.suffix.empty()) << symbol;
  }
}

TEST(Symbols, NewerVersionsOfAFunctionAreOtherSymbols) {
  std::set<const void*> seen;
  for (const int version : {10010, 11030, 12030})
    seen.insert(Look("cuStreamGetCaptureInfo", version, 0));
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(Look("cuDeviceGetUuid", 9020, 0), dlsym(Driver(), "cuDeviceGetUuid"));
  EXPECT_EQ(Look("cuDeviceGetUuid", 11040, 0), dlsym(Driver(), "cuDeviceGetUuid_v2"));
  EXPECT_EQ(Look("cuMemAlloc", 3020, 0), dlsym(Driver(), "cuMemAlloc_v2"));
  EXPECT_EQ(Look("cuMemAlloc", 13000, 0), dlsym(Driver(), "cuMemAlloc_v2"));
  EXPECT_EQ(Look("cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
            dlsym(Driver(), "cuLaunchKernel_ptsz"));
  EXPECT_EQ(Look("cuLaunchKernel", 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM),
            dlsym(Driver(), "cuLaunchKernel"));
}

TEST(Symbols, StatusTellsUnknownNamesFromOldVersions) {
  void* address = &address;
  CUdriverProcAddressQueryResult status;
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND,
                cuGetProcAddress("cuNoSuchFunction", &address, 13000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(address, nullptr);
  address = &address;
  EXPECT_CUDA(cuGetProcAddress("cuMemPrefetchBatchAsync", &address, 12000, 0, &status));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(address, nullptr);
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("", &address, 0, 0, nullptr));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &address, 13000, 64, nullptr));
}

TEST(Symbols, TheLookUpFunctionFindsItself) {
  EXPECT_EQ(Look("cuGetProcAddress", 12000, 0), dlsym(Driver(), "cuGetProcAddress_v2"));
  EXPECT_EQ(Look("cuGetProcAddress", 11030, 0), dlsym(Driver(), "cuGetProcAddress"));
}

TEST(Symbols, PrivateTablesAreNotSupported) {
  const void* table = &table;
  const CUuuid id{};
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuGetExportTable(&table, &id));
  EXPECT_EQ(table, nullptr);
}

// Below the first version of a function nothing is found, from then on the newest that is not newer
// than asked for: at every border, for every function and for both kinds of default stream.
TEST(Symbols, EveryVersionInBetweenGivesTheOneBeforeIt) {
  std::map<std::pair<std::string, bool>, std::map<int, void*>> versions;
  for (const Row& row : HeaderRows()) {
    const bool twin = !row.suffix.empty();
    versions[{row.function, twin}][row.version] = Look(
        row.function.c_str(), row.version, twin ? kTwin : cuuint64_t{CU_GET_PROC_ADDRESS_DEFAULT});
  }
  for (const auto& [key, by_version] : versions) {
    const auto& [function, twin] = key;
    const cuuint64_t flags = twin ? kTwin : cuuint64_t{CU_GET_PROC_ADDRESS_DEFAULT};
    // Without a twin that is old enough, the plain form serves: ask for that border elsewhere.
    const bool has_older_plain =
        twin && versions.count({function, false}) != 0 &&
        versions.at({function, false}).begin()->first < by_version.begin()->first;
    CUdriverProcAddressQueryResult status;
    void* address = &address;
    if (!has_older_plain) {
      EXPECT_CUDA(cuGetProcAddress(function.c_str(), &address, by_version.begin()->first - 1, flags,
                                   &status));
      EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) << function;
      EXPECT_EQ(address, nullptr) << function;
    }
    for (auto it = by_version.begin(); it != by_version.end(); ++it) {
      const auto next = std::next(it);
      const int last = next == by_version.end() ? 99999 : next->first - 1;
      EXPECT_EQ(Look(function.c_str(), last, flags, &status), it->second)
          << function << " " << last;
      EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
    }
  }
}

// Frameworks resolve names of the header one by one.
TEST(Symbols, EveryFunctionOfTheHeaderIsExported) {
  const std::string text = ReadText(ATP_TEST_CUDA_INCLUDE "/cuda.h");
  const std::regex declared(R"(CUresult\s+CUDAAPI\s+(cu[A-Z]\w+)\s*\()");
  const std::regex renamed(R"(#define\s+cu[A-Z]\w+\s+(cu[A-Z]\w+))");
  std::set<std::string> names;
  for (const std::regex& pattern : {declared, renamed}) {
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
      names.insert((*it)[1]);
  }
  ASSERT_GT(names.size(), 450u);
  for (const std::string& name : names) {
    if (text.find("static inline CUresult " + name) != std::string::npos) continue;
    EXPECT_NE(dlsym(Driver(), name.c_str()), nullptr) << name;
  }
}

TEST(Symbols, WhatIsNotWrittenSaysSo) {
  CUmipmappedArray array = nullptr;
  EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED, cuMipmappedArrayCreate(&array, nullptr, 1));
}

// The table of docs/sim.md names every function without code, and none that has it.
TEST(Symbols, WhatIsNotWrittenIsListedInTheDocumentation) {
  const std::string text = ReadText(ATP_SOURCE_DIR "/docs/sim.md");
  const size_t begin = text.find("Functions that answer `CUDA_ERROR_NOT_SUPPORTED`");
  const size_t end = text.find("How it behaves where it matters", begin);
  ASSERT_NE(end, std::string::npos);
  const std::string table = text.substr(begin, end - begin);
  const std::regex entry("`(cu[A-Z]\\w+)(\\*?)`");
  std::map<std::string, int> matches;  // entries, those with a star without it
  std::set<std::string> exact;
  for (std::sregex_iterator it(table.begin(), table.end(), entry), last; it != last; ++it) {
    matches[(*it)[1]] = 0;
    if ((*it)[2].length() == 0) exact.insert((*it)[1]);
  }
  std::set<std::string> exported;
  const auto add_weak = [&](void* address) {
    Dl_info info;
    ElfW(Sym)* symbol = nullptr;
    if (!address || dladdr1(address, &info, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0)
      return;
    if (ELF64_ST_BIND(symbol->st_info) == STB_WEAK && !std::strstr(info.dli_sname, "_pt"))
      exported.insert(info.dli_sname);
  };
  for (const Row& row : HeaderRows()) add_weak(Look(row.function.c_str(), row.version, 0));
  add_weak(dlsym(Driver(), "cuProfilerInitialize"));  // in another header
  ASSERT_GT(exported.size(), 100u);
  for (const std::string& name : exported) {
    bool listed = false;
    for (auto& [prefix, count] : matches) {
      const bool fits =
          exact.count(prefix) ? name == prefix : name.compare(0, prefix.size(), prefix) == 0;
      listed |= fits;
      count += fits;
    }
    EXPECT_TRUE(listed) << name << " has no code and is not in docs/sim.md";
  }
  for (const auto& [prefix, count] : matches)
    EXPECT_GT(count, 0) << prefix << " is in docs/sim.md, and there is none without code";
}

TEST(Symbols, AnOlderDriverHidesWhatCameLater) {
  RunWith({{"ATP_SIM_DRIVER", "12040"}}, [] {
    int version = 0;
    EXPECT_CUDA(cuDriverGetVersion(&version));
    EXPECT_EQ(version, 12040);
    CUdriverProcAddressQueryResult status;
    EXPECT_EQ(Look("cuMemDiscardBatchAsync", 13000, 0, &status), nullptr);
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT_EQ(Look("cuEventElapsedTime", 13000, 0), dlsym(Driver(), "cuEventElapsedTime"));
    EXPECT_CUDA(cuInit(0));
    EXPECT_RESULT(CUDA_ERROR_NOT_SUPPORTED,
                  cuMemDiscardBatchAsync(nullptr, nullptr, 0, 0, nullptr));
  });
}

}  // namespace
}  // namespace atp::sim
