// SPDX-License-Identifier: Apache-2.0
// Hand-made traces for tests: tensors by name and size in MiB, launches by what they touch.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>

#include "policy/trace.h"
#include "policy/trace_json.h"

namespace atp::policy {

constexpr Bytes kMiB = 1 << 20;

class TraceBuilder {
 public:
  explicit TraceBuilder(double mib_per_second = 1000) {
    trace_.name = "built";
    trace_.link.h2d = trace_.link.d2h = mib_per_second * static_cast<double>(kMiB);
  }
  uint32_t Global(Bytes mib) { return Add(mib, true); }
  uint32_t Local(Bytes mib) { return Add(mib, false); }
  TraceBuilder& Run(double seconds, std::initializer_list<uint32_t> reads,
                    std::initializer_list<uint32_t> writes = {}, Bytes workspace_mib = 0) {
    Launch launch;
    launch.name = "kernel";
    launch.seconds = seconds;
    launch.reads = reads;
    launch.writes = writes;
    launch.workspace = workspace_mib * kMiB;
    trace_.launches.push_back(launch);
    return *this;
  }
  Trace& trace() { return trace_; }
  const Trace& trace() const { return trace_; }

 private:
  uint32_t Add(Bytes mib, bool global) {
    Tensor tensor;
    tensor.id = std::to_string(trace_.tensors.size());
    tensor.bytes = mib * kMiB;
    tensor.kind = "other";
    tensor.global = global;
    trace_.tensors.push_back(tensor);
    return static_cast<uint32_t>(trace_.tensors.size() - 1);
  }
  Trace trace_;
};

inline std::string ReadTestFile(const std::string& name) {
  std::ifstream file(std::string(ATP_TEST_DATA "/").append(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Trace ReadTestTrace(const std::string& name) {
  Trace trace;
  std::string error;
  EXPECT_TRUE(ReadTrace(ReadTestFile(name), &trace, &error)) << error;
  return trace;
}

}  // namespace atp::policy
