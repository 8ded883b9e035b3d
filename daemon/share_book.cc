// SPDX-License-Identifier: Apache-2.0
#include "daemon/share_book.h"

#include <errno.h>
#include <signal.h>

#include <algorithm>

#include "daemon/log.h"
#include "policy/bounds.h"
#include "protocol/message.h"

namespace atp::daemon {
namespace {

// One that nobody can look at is gone when it has been silent for so long. Others may be stopped.
constexpr std::chrono::seconds kSilence{10};
constexpr std::chrono::hours kSilenceOfTheLiving{1};
constexpr size_t kMostJobsOfACard = 256;
// The driver keeps memory for itself that it counts as in use (chunks taken in advance): what is
// not accounted for is somebody's only beyond this.
constexpr Bytes kUnaccounted = 256u << 20;
// Of a job that does not know better.
constexpr Bytes kLeastParts = 16;

bool IsAlive(int process) { return kill(process, 0) == 0 || errno != ESRCH; }

bool IsGone(int process, std::chrono::steady_clock::duration silent) {
  if (process <= 0) return silent > kSilence;
  return silent > kSilenceOfTheLiving || !IsAlive(process);
}

}  // namespace

void ShareBook::SetLimits(const std::vector<UserLimits>& limits) {
  limits_ = {};
  users_.clear();
  for (const UserLimits& one : limits) (one.user ? users_[*one.user] : limits_) = one.limits;
}

const ShareLimits& ShareBook::LimitsOf(uint32_t user) const {
  const auto own = users_.find(user);
  return own != users_.end() ? own->second : limits_;
}

ShareJob ShareBook::Described(const Job& job) const {
  const ShareLimits& limits = LimitsOf(job.user);
  const protocol::ShareReport& report = job.report;
  ShareJob described;
  described.priority = std::min(report.priority, limits.priority);
  described.weight = limits.weight > 0 ? std::min(report.weight, limits.weight) : report.weight;
  described.footprint = report.footprint;
  for (const Bytes most : {report.most, job.most, limits.budget}) {
    if (most != 0 && (described.most == 0 || most < described.most)) described.most = most;
  }
  const Bytes least = report.least != 0 ? report.least : report.card_bytes / kLeastParts;
  described.least = std::min(least, report.card_bytes);
  if (described.most != 0) described.least = std::min(described.least, described.most);
  described.runs = !report.waits;
  described.curve = job.curve;
  return described;
}

void ShareBook::DropTheDead(Clock::time_point now) {
  for (auto card = cards_.begin(); card != cards_.end();) {
    std::vector<Job>& jobs = card->second.jobs;
    const size_t before = jobs.size();
    std::erase_if(jobs, [&](const Job& job) { return IsGone(job.process, now - job.heard); });
    if (jobs.empty()) {
      card = cards_.erase(card);
      continue;
    }
    if (jobs.size() != before) Divide(&card->second, jobs.front().report.card_bytes, true);
    ++card;
  }
}

// What processes hold that are no jobs, by the list that came with the job's report. A list that
// does not have the job itself counts processes in another way than we see them.
Bytes ShareBook::OfStrangers(const Card& card, const Job& job) {
  const auto is_job = [&](int process) {
    return std::any_of(card.jobs.begin(), card.jobs.end(),
                       [&](const Job& each) { return each.process == process; });
  };
  if (is_job(0)) return 0;
  Bytes strangers = 0;
  bool has_itself = false;
  for (const protocol::CardProcess& each : job.report.processes) {
    has_itself |= each.process == job.process;
    if (!is_job(each.process)) strangers += std::min(each.bytes, job.report.card_bytes);
  }
  return has_itself ? std::min(strangers, job.report.card_bytes) : 0;
}

// What the card has, less what is free and what its jobs may hold, is somebody else's. While
// others push pages of jobs out, jobs hold less than that, and a list of processes says more.
void ShareBook::SeeOthers(Card* card, const Job& job) {
  Bytes accounted = job.report.free_bytes;
  for (const Job& each : card->jobs) accounted += each.report.held;
  const Bytes total = job.report.card_bytes;
  const Bytes others = total - std::min(total, accounted);
  const Bytes unaccounted = std::min(kUnaccounted, total);
  card->others =
      std::max(others > unaccounted ? others - unaccounted / 2 : 0, OfStrangers(*card, job));
}

void ShareBook::Divide(Card* card, Bytes card_bytes, bool came_or_went) {
  const Bytes memory = card_bytes - std::min(card->others, card_bytes);
  std::vector<ShareJob> jobs;
  std::vector<Bytes> now;
  for (const Job& job : card->jobs) {
    jobs.push_back(Described(job));
    now.push_back(job.budget);
  }
  // What is known of one is not held against what is assumed of another.
  const bool all_known =
      std::all_of(jobs.begin(), jobs.end(), [](const ShareJob& job) { return !job.curve.empty(); });
  for (ShareJob& job : jobs) {
    if (!all_known) job.curve.clear();
  }
  std::vector<Bytes> wanted = WithTheRest(memory, jobs, ShareMemory(memory, jobs));
  if (!came_or_went) wanted = Settled(memory, jobs, now, wanted);
  if (wanted == now) return;
  ++decisions_;
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job& job = card->jobs[i];
    if (wanted[i] == job.budget) continue;
    Log(kLogInfo, "card %s: budget of job %016llx (process %d): %llu MiB, was %llu MiB",
        job.report.card.c_str(), static_cast<unsigned long long>(job.number), job.process,
        static_cast<unsigned long long>(wanted[i] >> 20),
        static_cast<unsigned long long>(job.budget >> 20));
    job.budget = wanted[i];
  }
}

Bytes ShareBook::Report(uint32_t user, uint64_t number, int process,
                        const protocol::ShareReport& report, Clock::time_point now) {
  DropTheDead(now);
  Card& card = cards_[report.card];
  auto job = std::find_if(card.jobs.begin(), card.jobs.end(), [&](const Job& each) {
    return each.number == number && each.user == user;
  });
  bool came_or_went = false;
  if (job == card.jobs.end()) {
    if (card.jobs.size() == kMostJobsOfACard) return protocol::kNoBudget;
    Job made;
    made.number = number;
    made.user = user;
    card.jobs.push_back(made);
    job = std::prev(card.jobs.end());
    came_or_went = true;
  } else {
    came_or_went = job->report.waits != report.waits || job->report.priority != report.priority ||
                   job->report.weight != report.weight;
  }
  job->process = process;
  job->report = report;
  job->heard = now;
  // A job that waits once it has been let in is one that starts.
  if (job->given && job->budget != 0) job->report.waits = false;
  card.shared |= card.jobs.size() > 1;
  const ShareJob described = Described(*job);
  if (!card.shared && described.most == 0 && !job->given) {
    job->budget = report.card_bytes;
    return protocol::kNoBudget;
  }
  SeeOthers(&card, *job);
  Divide(&card, report.card_bytes, came_or_went);
  job->given = true;
  return job->budget;
}

void ShareBook::Learn(uint64_t number, const protocol::Learned& learned) {
  for (auto& [name, card] : cards_) {
    for (Job& job : card.jobs) {
      if (job.number == number) job.curve = CurveOf(learned);
    }
  }
}

int ShareBook::SetMost(uint32_t user, uint64_t number, int process, Bytes bytes) {
  int count = 0;
  for (auto& [name, card] : cards_) {
    for (Job& job : card.jobs) {
      const bool meant = number != 0 ? job.number == number : job.process == process;
      if (!meant || job.user != user) continue;
      job.most = bytes;
      ++count;
    }
    if (count > 0) Divide(&card, card.jobs.front().report.card_bytes, /*came_or_went=*/true);
  }
  return count;
}

std::vector<ShareBook::Row> ShareBook::List(uint32_t user, Clock::time_point now) {
  DropTheDead(now);
  std::vector<Row> rows;
  for (const auto& [name, card] : cards_) {
    for (const Job& job : card.jobs) {
      if (job.user != user) continue;
      const ShareJob d = Described(job);
      rows.push_back({job.number, job.process, name, job.report.command, job.budget, d.footprint,
                      d.least, d.most, d.weight, d.priority});
    }
  }
  return rows;
}

Bytes ShareBook::OthersOn(const std::string& card) const {
  const auto found = cards_.find(card);
  return found == cards_.end() ? 0 : found->second.others;
}

std::vector<ShareJob::Point> CurveOf(const protocol::Learned& learned) {
  const protocol::LearnedPhase* longest = nullptr;
  for (const protocol::LearnedPhase& phase : learned.phases) {
    if (longest == nullptr || phase.launches.size() > longest->launches.size()) longest = &phase;
  }
  if (longest == nullptr) return {};
  policy::Trace trace;
  trace.link = {learned.h2d, learned.d2h, learned.duplex_h2d, learned.duplex_d2h};
  Bytes footprint = 0;
  for (const protocol::LearnedTensor& tensor : longest->tensors) {
    policy::Tensor& made = trace.tensors.emplace_back();
    made.bytes = tensor.length;
    footprint += tensor.length;
  }
  for (const protocol::LearnedLaunch& launch : longest->launches) {
    policy::Launch& made = trace.launches.emplace_back();
    made.seconds = launch.seconds;
    made.reads = launch.reads;
    made.writes = launch.writes;
  }
  if (policy::ComputeSeconds(trace) <= 0 || trace.link.h2d <= 0 || trace.link.d2h <= 0) return {};
  std::vector<ShareJob::Point> curve;
  constexpr Bytes kPoints = 8;
  for (Bytes i = 1; i <= kPoints; ++i) {
    const Bytes memory = footprint / kPoints * i;
    curve.push_back({memory, policy::BoundSafe(trace, memory)});
  }
  curve.back().memory = footprint;
  return curve;
}

}  // namespace atp::daemon
