// SPDX-License-Identifier: Apache-2.0
#include "report/sentences.h"

#include <algorithm>

#include "report/words.h"

namespace atp::report {
namespace {

using protocol::DeviceRun;

// Less than this share of the time is not worth a sentence.
constexpr double kNoticeable = 0.01;

int WorstCause(const Waits& waits) {
  return static_cast<int>(std::max_element(waits.begin(), waits.end()) - waits.begin());
}

std::string Place(const Analysis& a) {
  const double between = Sum(a.waits) - a.after_last;
  if (a.after_last > between) return "between the last launch of an iteration and the next one";
  const LaunchSpan span = WhereWaiting(a);
  const std::string first = a.launches[span.first].name, last = a.launches[span.last].name;
  if (span.first == span.last) {
    return "in front of launch " + std::to_string(span.first + 1) + " of " +
           std::to_string(a.launches.size()) + " (" + first + ")";
  }
  return "in front of launches " + std::to_string(span.first + 1) + " to " +
         std::to_string(span.last + 1) + " of " + std::to_string(a.launches.size()) + " (" + first +
         (first == last ? "" : " ... " + last) + ")";
}

std::string WaitSentence(const Analysis& a) {
  const double waiting = Sum(a.waits);
  if (waiting < kNoticeable * a.seconds) {
    return "The device waits for nothing: less than 1 % of the time no launch runs.";
  }
  const int worst = WorstCause(a.waits);
  std::string text = SayPercent(a.waits[worst], a.seconds) + " of the time is " + CauseName(worst) +
                     ", mostly " + Place(a);
  for (int c = 0; c < kCauses; ++c) {
    if (c == worst || a.waits[c] < kNoticeable * a.seconds) continue;
    text += "; " + SayPercent(a.waits[c], a.seconds) + " is " + CauseName(c);
  }
  return text + ".";
}

std::string MemorySentence(const Analysis& a) {
  if (a.missing_bytes == 0) {
    return "By the model, all moves fit behind the computing: more memory would bring nothing.";
  }
  return SayBytes(static_cast<double>(a.missing_bytes)) +
         " more memory would remove the waiting for the link (modelled: from there on bound_safe "
         "is "
         "the time of the launches alone).";
}

std::string SpeedSentence(const Analysis& a, double seconds) {
  std::string text = "An iteration takes " + SaySeconds(seconds) + ", " +
                     SayTimes(seconds / a.bounds.safe) + " x bound_safe (" +
                     SaySeconds(a.bounds.safe) +
                     "), the least that safe moves allow in this memory";
  if (a.plain_seconds > 0) {
    text += "; on plain managed memory it took " + SaySeconds(a.plain_seconds) + ", " +
            SayTimes(a.plain_seconds / seconds) + " x as long";
  }
  return text + ".";
}

}  // namespace

const char* CauseName(int cause) {
  switch (cause) {
    case kToDevice:
      return "waiting for H2D (data on its way to the device)";
    case kToHost:
      return "waiting for D2H (room on the device)";
    default:
      return "waiting for the host (program, driver or shim; the link is idle)";
  }
}

std::vector<std::string> InPlainWords(const DeviceRun& run, const Analysis& a) {
  std::vector<std::string> words;
  if (run.facts.off != 0 && !run.notes.empty()) {
    words.push_back("The shim gives no hints any more, and the driver moves memory by faults: " +
                    std::string(run.notes.back().text) + ".");
  }
  const double seconds = a.typical_seconds > 0 ? a.typical_seconds : a.seconds;
  if (!a.measured || a.seconds <= 0) {
    if (a.typical_seconds > 0) {
      words.push_back(
          "An iteration takes " + SaySeconds(a.typical_seconds) +
          "; none has been measured launch by launch yet, so the bounds are not known.");
    } else {
      words.push_back(
          "No iteration has run by a plan yet: the program has not repeated itself, or it ended "
          "before.");
    }
    return words;
  }
  words.push_back(SpeedSentence(a, seconds));
  words.push_back(WaitSentence(a));
  if (Sum(a.waits) >= kNoticeable * a.seconds || a.missing_bytes > 0) {
    words.push_back(MemorySentence(a));
  }
  if (a.slower > kNoticeable * a.seconds) {
    words.push_back("Launches took " + SaySeconds(a.slower) + " (" +
                    SayPercent(a.slower, a.seconds) +
                    ") longer than in their best measured iteration: page faults, or others on the "
                    "card or the link.");
  }
  return words;
}

std::vector<std::string> WhatWasLearned(const DeviceRun& run, const Analysis& a) {
  std::vector<std::string> words;
  uint64_t planned = 0;
  for (const IterationTime& it : a.iterations) planned += it.row.plan > 0;
  words.push_back(SayCount(run.facts.rows, "iteration") + " recorded; of the latest " +
                  std::to_string(a.iterations.size()) + ", " + std::to_string(planned) +
                  " ran by a plan.");
  words.push_back(SayCount(run.facts.plans, "plan") + ", " + SayCount(run.facts.phases, "phase") +
                  " (lengths or kinds of iteration), " + SayCount(run.facts.breaks, "break") +
                  " (the program left the plan, or freed what it moves).");
  if (!a.measured) return words;
  words.push_back("Period: " + SayCount(a.launches.size(), "launch") + ", which touch " +
                  SayBytes(static_cast<double>(a.footprint.total())) + " in " +
                  SayCount(a.allocations.size(), "allocation") + "; room for them " +
                  SayBytes(static_cast<double>(a.trace.device_bytes)) + ".");
  const policy::LinkRates& link = a.trace.link;
  std::string rates = "Link, as the moves showed it: " + SayTimes(link.h2d * 1e-9) +
                      " GB/s to the device, " + SayTimes(link.d2h * 1e-9) + " GB/s to the host";
  if (link.duplex_h2d > 0) {
    rates += "; both at once " + SayTimes(link.duplex_h2d * 1e-9) + " and " +
             SayTimes(link.duplex_d2h * 1e-9) + " GB/s";
  }
  words.push_back(rates + ".");
  return words;
}

std::vector<std::string> WhatWasSwitchedOff(const DeviceRun& run) {
  std::vector<std::string> words;
  for (const protocol::RunRecordNote& note : run.notes) {
    words.push_back("After " + SayCount(note.row, "iteration") + ": " + note.text + ".");
  }
  return words;
}

}  // namespace atp::report
