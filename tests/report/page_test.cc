// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <gtest/gtest.h>

#include "tests/protocol/sample_record.h"

namespace atp::report {
namespace {

protocol::RunRecord Sample() {
  protocol::RunRecord run;
  EXPECT_EQ(ReadRunRecord(protocol::SampleRecord(), &run), "");
  return run;
}

TEST(Page, HasAllItsPartsAndNeedsNothingFromOutside) {
  const std::string page = MakePage(Sample());
  for (const char* part :
       {"How this program ran", "./train --size 3", "Time per iteration, against both bounds",
        "Residency over one iteration", "Link use both ways", "Waiting, by cause and launch",
        "Bytes by class", "Kernels and copies, worst first", "Allocations that move most",
        "What was learned", "What was switched off, and why",
        "After 3 iterations: allocation 13 is copied back from now on", "bound_any"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  for (const char* outside : {"src=", "href=", "@import", "url(", "<script"}) {
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  }
}

TEST(Page, NamesFromTheProgramCannotBreakIt) {
  protocol::RunRecord run = Sample();
  std::strcpy(run.header.command, "</title><script>alert(1)</script>");
  run.devices[0].measured->names.replace(0, 4, "<b>&");
  const std::string page = MakePage(run);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_EQ(page.find("<b>&"), std::string::npos);
  EXPECT_NE(page.find("&lt;b&gt;&amp;"), std::string::npos);
}

TEST(Page, WithoutIterationsItStillSaysWhatItKnows) {
  protocol::RunRecord run = Sample();
  run.devices[0].rows.clear();
  run.devices[0].measured.reset();
  EXPECT_NE(MakePage(run).find("No iteration has run by a plan yet"), std::string::npos);
  run.devices.clear();
  EXPECT_NE(MakePage(run).find("Everything fits"), std::string::npos);
}

}  // namespace
}  // namespace atp::report
