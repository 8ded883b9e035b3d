// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/timeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace atp::sim {
namespace {

std::string Path() {
  return testing::TempDir() + "timeline-" +
         testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
}

nlohmann::json Read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::string all = text.str();
  all.erase(all.find_last_of(','));  // the format allows an open list, the parser does not
  std::filesystem::remove(path);
  return nlohmann::json::parse(all + "]");
}

const nlohmann::json* Find(const nlohmann::json& events, const std::string& track) {
  for (const auto& event : events) {
    if (event["tid"] == track) return &event;
  }
  return nullptr;
}

TEST(Timeline, ShowsKernelsBlocksOnTheLinkAndHintCalls) {
  MachineConfig config;
  config.profile = "tiny";
  config.timeline = Path();
  std::string error;
  auto machine = Machine::Create(config, &error);
  ASSERT_NE(machine, nullptr) << error;
  const Lane lane = machine->NewLane(0);
  const StreamId stream = machine->NewStream(0, false);
  constexpr uint64_t kAddress = 1u << 30;
  machine->AddManaged(lane, kAddress, 2 * kBlockBytes);
  machine->HostAccess(lane, kAddress, 2 * kBlockBytes, true);
  machine->Prefetch(lane, stream, kAddress, 2 * kBlockBytes, 0);
  machine->SyncStream(lane, stream);
  KernelWork work;
  work.name = "a \"name\"";
  work.resident_time = 3 * kMs;
  machine->SubmitKernel(lane, stream, work);
  machine->SyncStream(lane, stream);
  machine.reset();

  const nlohmann::json events = Read(config.timeline);
  const auto* kernel = Find(events, "kernels");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ((*kernel)["name"], "a \"name\"");
  EXPECT_DOUBLE_EQ((*kernel)["dur"], 3000.0);
  EXPECT_EQ((*kernel)["args"]["faults"], 0);
  const auto* block = Find(events, "to device (driver)");
  ASSERT_NE(block, nullptr);
  EXPECT_NEAR((*block)["dur"], kBlockBytes / 25e3, 3.0);  // 25 GB/s, and the engine's set-up
  EXPECT_LE((*block)["ts"].get<double>() + (*block)["dur"].get<double>(),
            (*kernel)["ts"].get<double>());
  const auto* call = Find(events, "lane " + std::to_string(lane));
  ASSERT_NE(call, nullptr);
  EXPECT_EQ((*call)["name"], "prefetch to device");
  EXPECT_EQ((*call)["args"]["bytes"], 2 * kBlockBytes);
}

TEST(Timeline, SaysHowOftenAKernelFaulted) {
  MachineConfig config;
  config.profile = "tiny";
  config.timeline = Path();
  std::string error;
  auto machine = Machine::Create(config, &error);
  ASSERT_NE(machine, nullptr) << error;
  const Lane lane = machine->NewLane(0);
  const StreamId stream = machine->NewStream(0, false);
  constexpr uint64_t kAddress = 1u << 30;
  machine->AddManaged(lane, kAddress, kBlockBytes);
  KernelWork work;
  work.name = "faults";
  work.resident_time = kMs;
  work.waves.resize(1);
  work.waves[0].pages.push_back({kAddress >> kPageBits, PageTouch::kRead});
  machine->SubmitKernel(lane, stream, work);
  machine->SyncStream(lane, stream);
  machine.reset();

  const nlohmann::json events = Read(config.timeline);
  const auto* kernel = Find(events, "kernels");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ((*kernel)["args"]["faults"], 1);
  EXPECT_GT((*kernel)["args"]["fault_us"].get<double>(), 0);
}

TEST(Timeline, AFileThatCannotBeWrittenIsNamed) {
  MachineConfig config;
  config.timeline = "/no/such/folder/t.json";
  std::string error;
  EXPECT_EQ(Machine::Create(config, &error), nullptr);
  EXPECT_NE(error.find("/no/such/folder/t.json"), std::string::npos) << error;
}

}  // namespace
}  // namespace atp::sim
