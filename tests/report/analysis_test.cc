// SPDX-License-Identifier: Apache-2.0
#include "report/analysis.h"

#include <gtest/gtest.h>

#include "policy/bounds.h"
#include "report/sentences.h"
#include "tests/protocol/sample_record.h"

namespace atp::report {
namespace {

using protocol::kSampleMiB;

protocol::DeviceRun Sample(protocol::SampleSnapshot measured = protocol::SampleMeasured()) {
  protocol::RunRecord run;
  EXPECT_EQ(ReadRunRecord(SampleRecord(std::move(measured)), &run), "");
  return run.devices.at(0);
}

std::string Words(const protocol::DeviceRun& run) {
  std::string all;
  for (const std::string& line : InPlainWords(run, Analyse(run))) all += line + "\n";
  return all;
}

TEST(Analysis, TimesComeFromTheDeviceElseFromTheHost) {
  const Analysis a = Analyse(Sample());
  ASSERT_EQ(a.iterations.size(), 6u);
  EXPECT_DOUBLE_EQ(a.iterations[4].seconds, 0.1);
  EXPECT_TRUE(a.iterations[4].by_host);
  EXPECT_FALSE(a.iterations[3].by_host);
  protocol::DeviceRun broken = Sample();
  broken.rows[4].ended_ns = 0;  // something else came behind it
  EXPECT_EQ(Analyse(broken).iterations[4].seconds, 0);
  EXPECT_DOUBLE_EQ(a.typical_seconds, 0.1);
  EXPECT_DOUBLE_EQ(a.plain_seconds, 0.4);
}

TEST(Analysis, TimesOfAnotherPhaseAreNotHeldAgainstTheBoundsOfTheMeasuredOne) {
  protocol::DeviceRun run = Sample();
  for (size_t i = 3; i < run.rows.size(); ++i) run.rows[i].phase = 7, run.rows[i].seconds = 0.03;
  EXPECT_DOUBLE_EQ(Analyse(run).typical_seconds, 0.1);
  EXPECT_DOUBLE_EQ(TypicalSeconds(run), 0.1);
  run.measured.reset();
  EXPECT_DOUBLE_EQ(Analyse(run).typical_seconds, 0.03);
  EXPECT_EQ(Analyse(run).plain_seconds, 0);  // none of that phase
}

TEST(Analysis, AWaitHasTheCauseThatTheLinkHadMeanwhile) {
  const Analysis a = Analyse(Sample());
  ASSERT_TRUE(a.measured);
  EXPECT_NEAR(a.launches[1].waits[kToDevice], 0.010, 1e-9);
  EXPECT_NEAR(a.launches[1].waits[kToHost], 0, 1e-9);  // that move ran beside one to the device
  EXPECT_NEAR(a.launches[3].waits[kToHost], 0.006, 1e-9);
  EXPECT_NEAR(a.after_last, 0.004, 1e-9);
  EXPECT_NEAR(a.waits[kHost], 0.004, 1e-9);
  EXPECT_NEAR(Sum(a.waits) + 4 * 0.020, a.seconds, 1e-9);
}

TEST(Analysis, LaunchesBesideEachOtherAreNoWaiting) {
  protocol::SampleSnapshot s = protocol::SampleMeasured();
  s.launches[0].end = 0.060;  // until after the next two have ended
  const Analysis a = Analyse(Sample(s));
  EXPECT_EQ(Sum(a.launches[1].waits), 0);
  EXPECT_EQ(Sum(a.launches[2].waits), 0);
  EXPECT_NEAR(a.slower, 0.040, 1e-9);
}

TEST(Analysis, WithoutATieOfTheClocksNoCauseIsClaimed) {
  protocol::SampleSnapshot s = protocol::SampleMeasured();
  s.head.begin_ns = 0;
  const Analysis a = Analyse(Sample(s));
  EXPECT_EQ(a.waits[kToDevice] + a.waits[kToHost], 0);
  EXPECT_NEAR(a.waits[kHost], 0.020, 1e-9);
}

TEST(Analysis, BoundsAreThoseOfThePolicyAndSoIsTheMissingMemory) {
  const Analysis a = Analyse(Sample());
  EXPECT_DOUBLE_EQ(a.bounds.compute, 0.080);
  EXPECT_DOUBLE_EQ(a.bounds.safe, policy::BoundSafe(a.trace, 300 * kSampleMiB));
  EXPECT_DOUBLE_EQ(a.bounds.any, policy::BoundAny(a.trace, 300 * kSampleMiB));
  ASSERT_GT(a.missing_bytes, 0u);
  EXPECT_LE(policy::BoundSafe(a.trace, 300 * kSampleMiB + a.missing_bytes), 0.080 * 1.01);
  EXPECT_GT(policy::BoundSafe(a.trace, 300 * kSampleMiB + a.missing_bytes - 4 * kSampleMiB),
            0.080 * 1.01);
  protocol::SampleSnapshot fast = protocol::SampleMeasured();
  fast.head.h2d = fast.head.d2h = 200e9;
  EXPECT_EQ(Analyse(Sample(fast)).missing_bytes, 0u);
}

TEST(Analysis, TheFootprintIsWhatStaysWhatIsDroppedAndWhatIsCopied) {
  const Analysis a = Analyse(Sample());
  EXPECT_EQ(a.footprint.stays, 240 * kSampleMiB);
  EXPECT_EQ(a.footprint.dropped, 100 * kSampleMiB);
  EXPECT_EQ(a.footprint.copied, 60 * kSampleMiB);
  EXPECT_EQ(a.allocations[0].id, 13u);
  EXPECT_EQ(a.allocations[0].first_used_by, "forward");
  EXPECT_EQ(a.kernels[0].name, "forward");
}

TEST(Analysis, WordsNameShareCauseAndPlace) {
  const std::string words = Words(Sample());
  EXPECT_NE(words.find("An iteration takes 100 ms"), std::string::npos) << words;
  EXPECT_NE(words.find("on plain managed memory it took 400 ms, 4.00 x"), std::string::npos);
  EXPECT_NE(words.find("10 % of the time is waiting for H2D"), std::string::npos) << words;
  EXPECT_NE(words.find("in front of launches 2 to 4 of 4 (forward ... update)"), std::string::npos)
      << words;
  EXPECT_NE(words.find("6.0 % is waiting for D2H"), std::string::npos) << words;
}

TEST(Analysis, WordsSayHowMuchMemoryIsMissing) {
  protocol::SampleSnapshot slow = protocol::SampleMeasured();
  slow.head.h2d = slow.head.d2h = 1e9;
  EXPECT_NE(Words(Sample(slow)).find("MiB more memory would remove the waiting"),
            std::string::npos);
}

TEST(Analysis, ARunWithoutAMeasuredIterationSaysSo) {
  protocol::DeviceRun run = Sample();
  run.measured.reset();
  EXPECT_NE(Words(run).find("none has been measured"), std::string::npos);
  run.rows.clear();
  EXPECT_NE(Words(run).find("No iteration has run by a plan yet"), std::string::npos);
  run.facts.off = 1;
  EXPECT_NE(Words(run).find("gives no hints any more"), std::string::npos);
}

}  // namespace
}  // namespace atp::report
