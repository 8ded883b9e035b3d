// SPDX-License-Identifier: Apache-2.0
#include "policy/trace_json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "policy/planner.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

const char* const kTensorBody =
    R"({"format":"atp-trace","version":1,"name":"n","source":"s","device_bytes":100,"h2d_bytes_per_s":10,"d2h_bytes_per_s":20.5,"host_bytes":7,"colour":{"a":[1]}}
{"tensor":0,"bytes":64,"kind":"weight","global":true,"raw_bytes":60}
{"tensor":"b","bytes":32,"kind":"activation","global":false}

{"launch":0,"name":"k","us":1.25,"reads":[0],"writes":["b"],"workspace_bytes":5,"us_all_fault":9}
{"launch":1,"name":"l","us":3,"reads":["b",0],"writes":[],"workspace_bytes":0,"stream":2}
)";

const char* const kRawBody =
    R"({"format":"atp-trace","version":1,"name":"n","source":"s","device_bytes":100,"h2d_bytes_per_s":10,"d2h_bytes_per_s":20}
{"alloc":7,"bytes":64,"at":0,"device":0,"kind":"managed","call_site":"x"}
{"mark":"iteration 1","at":0}
{"launch":0,"name":"k","signature":"ff0a","us":1.5,"stream":3,"device":0,"touches":[[7,0,32,"r"],[7,32,32,"o"]],"grid":[1,2]}
{"free":7,"at":1}
{"launch":1,"name":"memset","signature":"1","us":2,"stream":0,"device":0,"touches":[]}
)";

std::string ErrorOf(const std::string& text) {
  Trace trace;
  std::string error;
  EXPECT_FALSE(ReadTrace(text, &trace, &error)) << text;
  return error;
}

// The body above with one piece replaced.
std::string With(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TraceJson, ReadsATensorBody) {
  Trace trace;
  std::string error;
  ASSERT_TRUE(ReadTrace(kTensorBody, &trace, &error)) << error;
  EXPECT_EQ(trace.name, "n");
  EXPECT_EQ(trace.host_bytes, 7u);
  EXPECT_DOUBLE_EQ(trace.link.d2h, 20.5);
  ASSERT_EQ(trace.tensors.size(), 2u);
  EXPECT_EQ(trace.tensors[1].id, "b");
  EXPECT_FALSE(trace.tensors[1].global);
  EXPECT_DOUBLE_EQ(trace.launches[0].seconds, 1.25e-6);
  EXPECT_EQ(trace.launches[1].reads, (std::vector<uint32_t>{1, 0}));
  EXPECT_EQ(trace.launches[1].stream, 2);
}

TEST(TraceJson, WritesBackWhatItRead) {
  Trace trace, again;
  std::string error;
  ASSERT_TRUE(ReadTrace(kTensorBody, &trace, &error));
  const std::string text = WriteTrace(trace);
  for (const char* kept : {"\"colour\":{\"a\":[1]}", "\"raw_bytes\":60", "\"us_all_fault\":9",
                           "\"tensor\":0,", "\"tensor\":\"b\"", "\"us\":1.25,", "\"us\":3,"}) {
    EXPECT_NE(text.find(kept), std::string::npos) << kept << " in " << text;
  }
  ASSERT_TRUE(ReadTrace(text, &again, &error)) << error;
  EXPECT_EQ(WriteTrace(again), text);
}

TEST(TraceJson, KeepsDurationsToTheLastDigit) {
  RandomTraceOptions shape;
  shape.launches = 300;
  Trace trace = RandomTrace(1, shape), again;
  std::mt19937_64 random(2);
  for (auto& launch : trace.launches) launch.seconds = static_cast<double>(random() >> 40) * 1e-9;
  std::string error;
  ASSERT_TRUE(ReadTrace(WriteTrace(trace), &again, &error)) << error;
  for (size_t k = 0; k < trace.launches.size(); ++k) {
    EXPECT_DOUBLE_EQ(again.launches[k].seconds, trace.launches[k].seconds);  // 4 units at most
  }
}

TEST(TraceJson, NamesLineAndFieldOfAnError) {
  const std::string good = kTensorBody;
  auto expect = [&](const std::string& text, const char* line, const char* words) {
    const std::string error = ErrorOf(text);
    EXPECT_NE(error.find(line), std::string::npos) << error;
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  expect("", "line 1", "empty");
  expect("hello", "line 1", "no JSON");
  expect("[1]", "line 1", "no JSON object");
  expect("{}", "line 1", "\"format\" is missing");
  expect(With(good, "\"version\":1", "\"version\":2"), "line 1", "\"version\"");
  expect(With(good, "\"device_bytes\":100", "\"device_bytes\":-1"), "line 1", "negative");
  expect(With(good, "\"h2d_bytes_per_s\":10", "\"h2d_bytes_per_s\":0"), "line 1", "not positive");
  expect(With(good, "\"bytes\":64", "\"bytes\":6.5"), "line 2", "\"bytes\" is no integer");
  expect(With(good, "\"bytes\":64", "\"bytes\":18446744073709551615"), "line 2", "larger");
  expect(With(good, "\"bytes\":64,", ""), "line 2", "\"bytes\" is missing");
  expect(With(good, "\"global\":true", "\"global\":1"), "line 2", "\"global\"");
  expect(With(good, "\"tensor\":\"b\"", "\"tensor\":0"), "line 3", "second time");
  expect(With(good, "\"us\":1.25", "\"us\":\"x\""), "line 5", "\"us\" is no number");
  expect(With(good, "\"us\":1.25", "\"us\":-4"), "line 5", "\"us\" is negative");
  expect(With(good, "\"us\":1.25", "\"us\":1e999"), "line 5", "");
  expect(With(good, "\"reads\":[0]", "\"reads\":[5]"), "line 5", "names tensor 5");
  expect(With(good, "\"reads\":[0]", "\"reads\":[[0]]"), "line 5", "\"reads\"");
  expect(With(good, "\"reads\":[0]", "\"reads\":0"), "line 5", "\"reads\" is no array");
  expect(With(good, "\"launch\":1", "\"launch\":2"), "line 6", "should be 1");
  expect(kRawBody, "line 2", "raw body");
}

TEST(TraceJson, NoticesTruncation) {
  const std::string good = kTensorBody;
  EXPECT_NE(ErrorOf(good.substr(0, good.size() - 20)).find("truncated"), std::string::npos);
  const std::string counted = With(good, "\"version\":1", "\"version\":1,\"kernels\":3");
  EXPECT_NE(ErrorOf(counted).find("\"kernels\" says 3"), std::string::npos);
}

TEST(TraceJson, SurvivesDamagedInput) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string text = i % 2 ? kTensorBody : kRawBody;
    for (int j = 0; j < 3; ++j) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 30);
          break;
        default:
          text.insert(at, std::string(1 + random() % 3, "0[{\"9-e]"[random() % 8]));
      }
      if (text.empty()) text.push_back('x');
    }
    Trace trace;
    RawTrace raw;
    std::string error;
    if (!ReadTrace(text, &trace, &error)) {
      EXPECT_FALSE(error.empty());
    }
    if (!ReadRawTrace(text, &raw, &error)) {
      EXPECT_FALSE(error.empty());
    }
  }
  std::string deep(1 << 18, '[');
  EXPECT_FALSE(ErrorOf(deep).empty());
}

TEST(TraceJson, ReadsAndWritesARawBody) {
  RawTrace raw, again;
  std::string error;
  ASSERT_TRUE(ReadRawTrace(kRawBody, &raw, &error)) << error;
  ASSERT_EQ(raw.allocations.size(), 1u);
  EXPECT_EQ(raw.allocations[0].freed_at, 1u);
  EXPECT_EQ(raw.launches[0].signature, 0xff0au);
  ASSERT_EQ(raw.launches[0].touches.size(), 2u);
  EXPECT_EQ(raw.launches[0].touches[1].access, RawTrace::Access::kOverwrite);
  EXPECT_EQ(raw.marks[0].text, "iteration 1");
  EXPECT_EQ(WriteRawTrace(raw), kRawBody);  // every key, in the same order
  ASSERT_TRUE(ReadRawTrace(WriteRawTrace(raw), &again, &error)) << error;
}

TEST(TraceJson, RefusesARawBodyThatDoesNotFitTogether) {
  auto expect = [&](const char* from, const char* to, const char* words) {
    RawTrace raw;
    std::string error;
    EXPECT_FALSE(ReadRawTrace(With(kRawBody, from, to), &raw, &error));
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  expect("[7,0,32,\"r\"]", "[8,0,32,\"r\"]", "line 4: field \"touches\" names allocation 8");
  expect("[7,32,32,\"o\"]", "[7,33,32,\"o\"]", "reaches beyond allocation 7");
  expect("[7,32,32,\"o\"]", "[7,32,32,\"x\"]", "none of r, w, rw, o");
  expect("[7,32,32,\"o\"]", "[7,32]", "not [id, offset, bytes");
  expect("\"ff0a\"", "\"xyz\"", "\"signature\"");
  expect("{\"free\":7,\"at\":1}", "{\"free\":9,\"at\":1}", "allocation 9");
  expect("{\"mark\":\"iteration 1\",\"at\":0}", "{\"alloc\":7,\"bytes\":1,\"at\":0}",
         "second time");
}

TEST(TraceJson, TellsTheBodiesApart) {
  EXPECT_EQ(DetectTraceBody(kTensorBody), TraceBody::kTensor);
  EXPECT_EQ(DetectTraceBody(kRawBody), TraceBody::kRaw);
  EXPECT_EQ(DetectTraceBody("nonsense"), TraceBody::kNone);
}

TEST(TraceJson, SchedulesSurviveTheRoundTrip) {
  TraceBuilder builder;
  for (int i = 0; i < 6; ++i) builder.Run(0.01, {builder.Global(20)});
  PlanOptions options;
  options.memory = 60 * kMiB;
  const Schedule schedule = ToSchedule(MakePlan(builder.trace(), options));
  ASSERT_FALSE(schedule.moves.empty());
  Schedule again;
  std::string error;
  const std::string text = WriteSchedule(builder.trace(), schedule);
  ASSERT_TRUE(ReadSchedule(text, builder.trace(), &again, &error)) << error;
  EXPECT_EQ(WriteSchedule(builder.trace(), again), text);
  EXPECT_EQ(again.moves.size(), schedule.moves.size());
  EXPECT_FALSE(ReadSchedule("{\"period_s\":1}", builder.trace(), &again, &error));
  EXPECT_NE(error.find("\"launches\" is missing"), std::string::npos);
}

TEST(TraceJson, TimesThatNoNumberOfMicrosecondsNamesStayAsTheyAreOnceWritten) {
  Trace trace;
  trace.link.h2d = trace.link.d2h = 1e9;
  for (int i = 0; i < 2000; ++i) {
    trace.launches.emplace_back();
    trace.launches.back().seconds = 1.3471772799999996e-3 + i * 1e-9 / 7;
  }
  const std::string written = WriteTrace(trace);
  Trace again;
  std::string error;
  ASSERT_TRUE(ReadTrace(written, &again, &error)) << error;
  EXPECT_EQ(WriteTrace(again), written);
  for (size_t i = 0; i < trace.launches.size(); ++i) {
    EXPECT_NEAR(again.launches[i].seconds, trace.launches[i].seconds, 1e-17);
  }
}

}  // namespace
}  // namespace atp::policy
