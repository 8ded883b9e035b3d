// SPDX-License-Identifier: Apache-2.0
// Who is on which card, and what each has been given: what shims report goes in, their budgets come
// out (share.h decides). A job is a process on a card. It ends when its process does, as far as
// this one can see it, else when it has not reported for some seconds. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/share.h"
#include "daemon/share_limits.h"
#include "protocol/learned.h"
#include "protocol/share_report.h"

namespace atp::daemon {

class ShareBook {
 public:
  using Clock = std::chrono::steady_clock;

  // In the place of those before.
  void SetLimits(const std::vector<UserLimits>& limits);

  // The budget of the job; 0 = it has to wait, protocol::kNoBudget = nobody to share with.
  // `process` 0: not to be seen from here.
  Bytes Report(uint32_t user, uint64_t job, int process, const protocol::ShareReport& report,
               Clock::time_point now = Clock::now());
  // What is known of how its iterations hang on memory.
  void Learn(uint64_t job, const protocol::Learned& learned);
  // Of a user's jobs the one with this number, or those of this process; 0 bytes = no limit. Gives
  // how many that were.
  int SetMost(uint32_t user, uint64_t job, int process, Bytes bytes);

  struct Row {
    uint64_t job = 0;
    int process = 0;
    std::string card, command;
    Bytes budget = 0, footprint = 0, least = 0, most = 0;  // budget 0: it waits
    double weight = 1;
    int priority = 0;
  };
  // Those of one user.
  std::vector<Row> List(uint32_t user, Clock::time_point now = Clock::now());
  uint64_t decisions() const { return decisions_; }
  // Memory of a card that none of its jobs can have.
  Bytes OthersOn(const std::string& card) const;

 private:
  struct Job {
    uint64_t number = 0;
    uint32_t user = 0;
    int process = 0;
    protocol::ShareReport report;
    Bytes most = 0;  // by SetMost
    Bytes budget = 0;
    bool given = false;  // a budget, ever
    Clock::time_point heard;
    std::vector<ShareJob::Point> curve;
  };
  struct Card {
    std::vector<Job> jobs;  // in the order in which they came
    Bytes others = 0;
    bool shared = false;  // by more than one job since it was empty
  };

  ShareJob Described(const Job& job) const;
  const ShareLimits& LimitsOf(uint32_t user) const;
  void DropTheDead(Clock::time_point now);
  void SeeOthers(Card* card, const Job& job);
  static Bytes OfStrangers(const Card& card, const Job& job);
  void Divide(Card* card, Bytes card_bytes, bool came_or_went);

  ShareLimits limits_;
  std::map<uint32_t, ShareLimits> users_;
  std::map<std::string, Card> cards_;
  uint64_t decisions_ = 0;
};

// Seconds of an iteration by memory, by the bound of what was learned; empty: nothing to go by.
std::vector<ShareJob::Point> CurveOf(const protocol::Learned& learned);

}  // namespace atp::daemon
