// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <set>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

// cuInit fails and one line on stderr names the variable, the value and what to write instead.
void ExpectRefusal(const Environment& environment, const std::string& message) {
  RunWith(environment, [&] {
    testing::internal::CaptureStderr();
    EXPECT_NE(cuInit(0), CUDA_SUCCESS);
    EXPECT_NE(cuInit(0), CUDA_SUCCESS);  // said once
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(message), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  });
}

TEST(Settings, AnUnknownCardIsRefused) { ExpectRefusal({{"ATP_SIM_GPU", "voodoo2"}}, "voodoo2"); }

TEST(Settings, AMalformedSizeIsRefused) {
  ExpectRefusal({{"ATP_SIM_MEMORY", "lots"}},
                "ATP_SIM_MEMORY=lots: not a size; write it like 16GiB");
}

TEST(Settings, AMalformedHostSizeIsRefused) {
  ExpectRefusal({{"ATP_SIM_HOST_MEMORY", "12XB"}}, "ATP_SIM_HOST_MEMORY=12XB");
}

TEST(Settings, AMalformedDriverVersionIsRefused) {
  ExpectRefusal({{"ATP_SIM_DRIVER", "12.4"}}, "ATP_SIM_DRIVER=12.4: a CUDA version from 11000");
}

TEST(Settings, AnUnknownCostIsRefused) {
  ExpectRefusal({{"ATP_SIM_SET", "warp_speed=9"}}, "warp_speed");
}

TEST(Settings, AMalformedFaultIsRefused) {
  ExpectRefusal({{"ATP_SIM_FAULT", "cuMemAlloc_v2"}}, "a fault is written function:nth=error");
}

TEST(Settings, AnUnknownModelIsRefused) {
  ExpectRefusal({{"ATP_SIM_MODEL", "all"}}, "ATP_SIM_MODEL=all: only `repeats` is known");
}

TEST(Settings, AnUnknownCheckIsRefused) {
  ExpectRefusal({{"ATP_SIM_CHECK", "all"}}, "ATP_SIM_CHECK=all: only `uninitialised` is known");
}

TEST(Settings, SizesHaveBinaryUnits) {
  for (const char* size : {"64MiB", "64M", "64MB", "67108864", "0.0625GiB"}) {
    RunWith({{"ATP_SIM_MEMORY", size}}, [] {
      ASSERT_CUDA(cuInit(0));
      size_t bytes = 0;
      EXPECT_CUDA(cuDeviceTotalMem(&bytes, 0));
      EXPECT_EQ(bytes, size_t{64} << 20);
    });
  }
}

TEST(Settings, SeveralDevicesDifferInIdentity) {
  RunWith({{"ATP_SIM_DEVICES", "4"}}, [] {
    ASSERT_CUDA(cuInit(0));
    int count = 0;
    ASSERT_CUDA(cuDeviceGetCount(&count));
    ASSERT_EQ(count, 4);
    std::set<std::string> uuids, buses;
    for (int i = 0; i < count; ++i) {
      CUuuid uuid;
      char bus[32];
      ASSERT_CUDA(cuDeviceGetUuid(&uuid, i));
      ASSERT_CUDA(cuDeviceGetPCIBusId(bus, sizeof bus, i));
      uuids.insert(std::string(uuid.bytes, 16));
      buses.insert(bus);
      CUdevice found = -1;
      EXPECT_CUDA(cuDeviceGetByPCIBusId(&found, bus));
      EXPECT_EQ(found, i);
    }
    EXPECT_EQ(uuids.size(), 4u);
    EXPECT_EQ(buses.size(), 4u);
  });
}

TEST(Settings, VisibleDevicesAreChosenByNumberInTheirOrder) {
  RunWith({{"ATP_SIM_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", "2,0"}}, [] {
    ASSERT_CUDA(cuInit(0));
    int count = 0;
    ASSERT_CUDA(cuDeviceGetCount(&count));
    ASSERT_EQ(count, 2);
    CUuuid first, second;
    ASSERT_CUDA(cuDeviceGetUuid(&first, 0));
    ASSERT_CUDA(cuDeviceGetUuid(&second, 1));
    EXPECT_EQ(first.bytes[15], 2);
    EXPECT_EQ(second.bytes[15], 0);
  });
}

TEST(Settings, VisibleDevicesAreChosenByUuid) {
  // UUIDs are fixed: see CardUuid in identity.h.
  RunWith({{"ATP_SIM_DEVICES", "2"},
           {"CUDA_VISIBLE_DEVICES", "GPU-41545020-7369-6d75-6c61-746564000001"}},
          [] {
            ASSERT_CUDA(cuInit(0));
            int count = 0;
            ASSERT_CUDA(cuDeviceGetCount(&count));
            ASSERT_EQ(count, 1);
            CUuuid uuid;
            ASSERT_CUDA(cuDeviceGetUuid(&uuid, 0));
            EXPECT_EQ(uuid.bytes[15], 1);
          });
}

TEST(Settings, NoVisibleDeviceMeansNoDevice) {
  for (const char* list : {"", "-1", "7", "0,0"}) {
    RunWith({{"ATP_SIM_DEVICES", "2"}, {"CUDA_VISIBLE_DEVICES", list}},
            [] { EXPECT_RESULT(CUDA_ERROR_NO_DEVICE, cuInit(0)); });
  }
}

TEST(Settings, TheStatisticsFileCountsCallsAtExit) {
  const std::string path = TemporaryFile("stats.json");
  RunWith({{"ATP_SIM_STATS", path}}, [] {
    ASSERT_CUDA(cuInit(0));
    CUmipmappedArray array = nullptr;
    cuMipmappedArrayCreate(&array, nullptr, 1);
    cuMipmappedArrayCreate(&array, nullptr, 1);
    int count = 0;
    for (int i = 0; i < 3; ++i) ASSERT_CUDA(cuDeviceGetCount(&count));
  });
  const auto stats = nlohmann::json::parse(ReadText(path));
  EXPECT_EQ(stats["calls"]["cuDeviceGetCount"], 3);
  EXPECT_EQ(stats["unsupported_calls"]["cuMipmappedArrayCreate"], 2);
  EXPECT_EQ(stats["modelled_launches"], 0);
  remove(path.c_str());
}

}  // namespace
}  // namespace atp::sim
