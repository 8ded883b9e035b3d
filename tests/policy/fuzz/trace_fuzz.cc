// SPDX-License-Identifier: Apache-2.0
// Feeds damaged traces to every reader:  trace_fuzz [--runs N] [--seconds S] [--seed K]
// The seeds of the corpus are written by our own writers; a run changes, cuts, doubles or splices
// bytes and words of one. A reader must answer with an error in words, or with a trace that it
// writes and reads back the same, and that bounds and the check of schedules take without harm.
// Sanitizers see the rest. Prints the damaged text and ends with 1 on the first that breaks a rule.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "cli/trace_convert.h"
#include "policy/bounds.h"
#include "policy/planner.h"
#include "policy/raw_trace.h"
#include "policy/schedule.h"
#include "policy/synthetic/synthetic.h"
#include "policy/trace_json.h"
#include "policy/validate.h"
#include "protocol/trace_reader.h"
#include "tests/fuzz/mutator.h"
#include "tests/protocol/sample_trace.h"

namespace {

using namespace atp;
using fuzz::Mutator;
using fuzz::Option;

// What a run can break; null = nothing broken.
using Rule = const char*;

Rule TensorText(const std::string& text, const policy::Trace&) {
  policy::Trace trace;
  std::string error;
  if (!policy::ReadTrace(text, &trace, &error))
    return error.empty() ? "no error in words" : nullptr;
  const std::string written = policy::WriteTrace(trace);
  policy::Trace again;
  if (!policy::ReadTrace(written, &again, &error)) return "what was written cannot be read";
  if (policy::WriteTrace(again) != written) return "what was written reads as something else";
  if (trace.link.h2d > 0 && trace.link.d2h > 0) {
    (void)policy::BoundAny(trace, trace.device_bytes);
    (void)policy::BoundClosed(trace, trace.device_bytes);
  }
  return nullptr;
}

Rule RawText(const std::string& text, const policy::Trace&) {
  policy::RawTrace trace;
  std::string error;
  if (!policy::ReadRawTrace(text, &trace, &error))
    return error.empty() ? "no error in words" : nullptr;
  const std::string written = policy::WriteRawTrace(trace);
  policy::RawTrace again;
  if (!policy::ReadRawTrace(written, &again, &error)) return "what was written cannot be read";
  if (policy::WriteRawTrace(again) != written) return "what was written reads as something else";
  if (const auto period = policy::FindMainPeriod(trace)) (void)policy::ToPeriod(trace, *period);
  return nullptr;
}

Rule ScheduleText(const std::string& text, const policy::Trace& trace) {
  policy::Schedule schedule;
  std::string error;
  if (!policy::ReadSchedule(text, trace, &schedule, &error)) {
    return error.empty() ? "no error in words" : nullptr;
  }
  (void)policy::Validate(trace, schedule);
  return nullptr;
}

Rule Binary(const std::string& text, const policy::Trace&) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  for (bool accept_truncated : {false, true}) {
    protocol::TraceFile file;
    std::string error;
    if (!protocol::ReadTrace(bytes, {accept_truncated}, &file, &error)) {
      if (error.empty()) return "no error in words";
      continue;
    }
    (void)(file.steps.empty() ? policy::WriteRawTrace(cli::RawTraceOf(file))
                              : policy::WriteTrace(cli::TensorTraceOf(file)));
  }
  return nullptr;
}

struct Form {
  const char* name;
  Rule (*run)(const std::string&, const policy::Trace&);
  std::vector<std::string> corpus;
};

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<Form> Forms(const policy::Trace& trace) {
  policy::PlanOptions options;
  options.memory = trace.device_bytes;
  const policy::Schedule schedule = policy::ToSchedule(policy::MakePlan(trace, options));
  const auto raw = protocol::SampleRaw(12), tensors = protocol::SampleTensors(12);
  return {{"tensor",
           TensorText,
           {policy::WriteTrace(trace), policy::WriteTrace(cli::TensorTraceOf(tensors))}},
          {"raw", RawText, {policy::WriteRawTrace(cli::RawTraceOf(raw))}},
          {"schedule", ScheduleText, {policy::WriteSchedule(trace, schedule)}},
          {"binary", Binary, {Text(protocol::BytesOf(raw)), Text(protocol::BytesOf(tensors))}}};
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t seconds = Option(count, arguments, "--seconds", 0);
  const uint64_t runs = Option(count, arguments, "--runs", seconds > 0 ? UINT64_MAX : 2000);
  const uint64_t seed = Option(count, arguments, "--seed", 1);
  policy::SyntheticOptions options;
  options.kind = "attention";
  options.layers = 2;
  policy::Trace trace = policy::MakeSynthetic(options);
  trace.device_bytes = trace.device_bytes / 32;
  const std::vector<Form> forms = Forms(trace);
  const std::time_t until = std::time(nullptr) + static_cast<std::time_t>(seconds);
  uint64_t run = 0;
  for (; run < runs && (seconds == 0 || std::time(nullptr) < until); ++run) {
    Mutator mutator(seed * 1'000'000'007 + run);
    for (const Form& form : forms) {
      const std::string text = mutator.Damage(form.corpus[mutator.Below(form.corpus.size())]);
      const Rule broken = form.run(text, trace);
      if (broken == nullptr) continue;
      std::fprintf(stderr, "%s, seed %llu, run %llu: %s\n", form.name,
                   static_cast<unsigned long long>(seed), static_cast<unsigned long long>(run),
                   broken);
      std::fwrite(text.data(), 1, text.size(), stdout);
      return 1;
    }
  }
  std::fprintf(stderr, "%llu damaged traces of each of %zu forms: nothing broken\n",
               static_cast<unsigned long long>(run), forms.size());
  return 0;
}
