// SPDX-License-Identifier: Apache-2.0
#include "shim/call_site.h"

#include <gtest/gtest.h>

#include <string>

namespace atp::shim {
namespace {

TEST(CallSite, LibrariesThatExportTheirMemoryAreKnownByTheirFileNames) {
  for (const char* path : {"/usr/lib/libnccl.so.2", "libnccl-net.so", "/opt/ucx/libuct_cuda.so.0",
                           "/usr/lib/libmpi.so.40", "libnvshmem_host.so.3"}) {
    EXPECT_TRUE(ExportsMemory(path, "")) << path;
  }
  for (const char* path :
       {"/usr/lib/libc.so.6", "", "libcudart.so.13", "/opt/libnccl/libother.so", "libmpifr.so.6"}) {
    EXPECT_FALSE(ExportsMemory(path, "")) << path;
  }
}

TEST(CallSite, TheUserNamesOthers) {
  EXPECT_TRUE(ExportsMemory("/x/libmine.so", "libother,libmine"));
  EXPECT_TRUE(ExportsMemory("/x/libother.so.1", "libother,libmine"));
  EXPECT_FALSE(ExportsMemory("/x/libthird.so", "libother,libmine"));
  EXPECT_FALSE(ExportsMemory("/x/libthird.so", ",,"));
}

TEST(CallSite, WithoutSuchALibraryNobodyIsOne) { EXPECT_FALSE(CalledByExporter()); }

TEST(CallSite, ACallerHasAName) {
  char text[160];
  DescribeCaller(text, sizeof text);
  EXPECT_NE(std::string(text).find("+0x"), std::string::npos) << text;
}

}  // namespace
}  // namespace atp::shim
