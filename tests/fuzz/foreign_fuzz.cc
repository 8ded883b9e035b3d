// SPDX-License-Identifier: Apache-2.0
// Feeds damaged bytes to every reader of what others write, but for traces (tests/policy/fuzz):
//   foreign_fuzz [--runs N] [--seconds S] [--seed K]
// messages to atpd and what comes with them, rows and files of the store, records of runs, machine
// files, settings, PTX text (of the shim and of the simulated machine). A reader must answer with
// an error in words, or take what it has read without harm; what it takes must mean the same when
// it is written and read again. Sanitizers see the rest. Prints the damaged bytes and ends with 1
// on the first that breaks a rule.
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "daemon/service.h"
#include "daemon/settings.h"
#include "daemon/share_book.h"
#include "daemon/store.h"
#include "daemon/tune_search.h"
#include "policy/machine_json.h"
#include "protocol/learned.h"
#include "protocol/message.h"
#include "protocol/run_record_reader.h"
#include "protocol/share_report.h"
#include "ptx/parser.h"
#include "report/analysis.h"
#include "shim/ptx_access.h"
#include "tests/fuzz/mutator.h"
#include "tests/protocol/sample_learned.h"
#include "tests/protocol/sample_record.h"

namespace {

using namespace atp;

using Rule = const char*;  // what was broken; null = nothing

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }
template <typename Container>
std::string Text(const Container& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::filesystem::path Folder() {
  static const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("foreign_fuzz." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  return folder;
}

Rule Message(const std::string& text) {
  const std::vector<uint8_t> bytes = Bytes(text);
  const auto message = protocol::ReadMessage(bytes);
  if (!message) return nullptr;
  const auto again = protocol::ReadMessage(protocol::WriteMessage(*message));
  const bool same = again && again->kind == message->kind && again->text == message->text;
  return same ? nullptr : "what was written reads as something else";
}

// With a body, to the daemon itself.
Rule Exchange(const std::string& text) {
  static daemon::Store store(Folder() / "exchange.db", {1u << 20, 20});
  static daemon::ShareBook book;
  static daemon::Service service(&store, nullptr, &book);
  protocol::Message message;
  message.kind = static_cast<protocol::MessageKind>(1 + (text.empty() ? 0 : text[0] & 7));
  std::vector<protocol::Fd> bodies;
  bodies.push_back(protocol::MakeBody(Bytes(text)));
  const auto reply = service.Answer(1, message, bodies);
  return reply && reply->bodies.size() > protocol::kMostBodies ? "too long an answer" : nullptr;
}

Rule ShareReport(const std::string& text) {
  protocol::ShareReport report, again;
  std::string error;
  if (!protocol::Read(Bytes(text), &report, &error))
    return error.empty() ? "no error in words" : nullptr;
  if (!protocol::Read(protocol::Write(report), &again, &error)) return "cannot be read again";
  if (again != report) return "what was written reads as something else";
  daemon::ShareBook book;
  book.Report(1, 1, 1, report);
  report.free_bytes = 0;
  const uint64_t budget = book.Report(1, 2, 1, report);
  const bool fits = budget == protocol::kNoBudget || budget <= report.card_bytes;
  return fits ? nullptr : "a budget above the card";
}

Rule Learned(const std::string& text) {
  protocol::Learned learned, again;
  std::string error;
  if (!protocol::Read(Bytes(text), &learned, &error)) {
    return error.empty() ? "no error in words" : nullptr;
  }
  if (!protocol::Read(protocol::Write(learned), &again, &error)) return "cannot be read again";
  if (again != learned) return "what was written reads as something else";
  daemon::SearchOptions options;
  options.evaluations = 2;
  unsigned left = 2;
  options.go_on = [&] { return --left > 0; };
  // The bytes of a fuzzed workload have no bound but the search's own; small ones are enough here.
  if (learned.budget_bytes < (256u << 20)) (void)daemon::SearchTuning(learned, options);
  return nullptr;
}

Rule Fingerprint(const std::string& text) {
  protocol::Fingerprint fingerprint;
  std::string error;
  const bool good = protocol::Read(Bytes(text), &fingerprint, &error);
  return good || !error.empty() ? nullptr : "no error in words";
}

Rule StoreFile(const std::string& text) {
  const std::filesystem::path file = Folder() / "damaged.db";
  for (const auto& entry : std::filesystem::directory_iterator(Folder())) {
    if (entry.path().filename().string().starts_with("damaged")) {
      std::filesystem::remove(entry.path());
    }
  }
  std::ofstream(file, std::ios::binary) << text;
  try {
    daemon::Store store(file, {});
    const protocol::Learned learned = protocol::SampleLearned();
    for (const auto& bytes : store.Find(1, learned.fingerprint, 3)) {
      if (Rule broken = Learned(Text(bytes))) return broken;
    }
    store.List(1);
    store.NextToTune();
    store.Remember(1, learned, protocol::Write(learned), 7);
  } catch (const daemon::StoreError& error) {
    if (*error.what() == 0) return "no error in words";
  }
  return nullptr;
}

Rule Record(const std::string& text) {
  protocol::RunRecord run;
  if (!ReadRunRecord(std::span<const char>(text.data(), text.size()), &run).empty()) return nullptr;
  for (const protocol::DeviceRun& device : run.devices) (void)report::TypicalSeconds(device);
  return nullptr;
}

Rule Machine(const std::string& text) {
  policy::MeasuredMachine machine, again;
  std::string error;
  if (!policy::ReadMachine(text, &machine, &error)) {
    return error.empty() ? "no error in words" : nullptr;
  }
  if (!policy::ReadMachine(policy::WriteMachine(machine), &again, &error)) {
    return "what was written cannot be read";
  }
  return policy::SimulatedCosts(machine) == policy::SimulatedCosts(again)
             ? nullptr
             : "what was written reads as something else";
}

Rule Settings(const std::string& text) {
  const std::filesystem::path file = Folder() / "conf";
  std::ofstream(file, std::ios::binary) << text;
  daemon::Settings settings;
  const int code = daemon::ReadSettings(
      {"--config", file}, [](const char*) { return nullptr; }, &settings, nullptr);
  return code == -1 || code == 2 ? nullptr : "an exit code that is not documented";
}

Rule Ptx(const std::string& text) {
  (void)shim::ReadKernelAccess(text);
  return nullptr;
}

Rule SimulatedPtx(const std::string& text) {
  ptx::ParsedModule module;
  std::string error;
  const auto any = [](auto&&...) { return true; };
  if (!ptx::ParseModule(text, any, &module, &error)) {
    return error.empty() ? "no error in words" : nullptr;
  }
  return nullptr;
}

constexpr char kPtx[] = R"(.version 7.0
.target sm_52
.address_size 64
.global .align 4 .b8 table[16] = {1, 2, 3, 4};
.visible .entry Add(.param .u64 to, .param .u64 from, .param .u32 n)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<6>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [n];
  setp.ge.u32 %p, %r1, %r2;
  @%p bra Done;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd5+8];
  st.global.f32 [%rd4], %f1;
Done:
  ret;
}
)";

struct Form {
  const char* name;
  Rule (*run)(const std::string&);
  unsigned every;  // so many runs: some are slow
  std::vector<std::string> corpus;
};

std::string StoreBytes() {
  const std::filesystem::path file = Folder() / "whole.db";
  {
    daemon::Store store(file, {});
    const protocol::Learned learned = protocol::SampleLearned();
    store.Remember(1, learned, protocol::Write(learned), 7);
  }
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Form> Forms() {
  protocol::Learned tuned = protocol::SampleLearned();
  tuned.trial = protocol::TrialState::kOffered;
  tuned.tuning.head_room_bytes = tuned.candidate.head_room_bytes = 4u << 20;
  tuned.budget_bytes = 64u << 20;
  const std::string learned = Text(protocol::Write(tuned));
  protocol::ShareReport job;
  job.card = "card";
  job.card_bytes = uint64_t{16} << 30;
  job.footprint = job.held = uint64_t{12} << 30;
  job.processes = {{uint64_t{3} << 30, 1, 0}, {uint64_t{2} << 30, 2, 0}};
  const std::string report = Text(protocol::Write(job));
  policy::MeasuredMachine machine;
  machine.device = "Sample";
  machine.link = {25e9, 24e9, 12e9, 23e9};
  machine.fault_us = 0.36;
  return {{"message", Message, 1, {Text(protocol::WriteMessage({1, {}, 7, "import", 3}))}},
          {"exchange",
           Exchange,
           20,
           {"1" + learned, "7" + report, Text(protocol::Write(tuned.fingerprint))}},
          {"share report", ShareReport, 1, {report}},
          {"learned", Learned, 1, {learned}},
          {"fingerprint", Fingerprint, 1, {Text(protocol::Write(tuned.fingerprint))}},
          {"store", StoreFile, 50, {StoreBytes()}},
          {"record", Record, 10, {Text(protocol::SampleRecord())}},
          {"machine", Machine, 1, {policy::WriteMachine(machine)}},
          {"settings", Settings, 10, {"store-bytes = 1MB\ntune = on\n# no\nsocket = \"/a b\"\n"}},
          {"ptx", Ptx, 1, {kPtx}},
          {"simulated ptx", SimulatedPtx, 1, {kPtx}}};
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t seconds = fuzz::Option(count, arguments, "--seconds", 0);
  const uint64_t runs = fuzz::Option(count, arguments, "--runs", seconds > 0 ? UINT64_MAX : 1000);
  const uint64_t seed = fuzz::Option(count, arguments, "--seed", 1);
  std::freopen("/dev/null", "w", stderr);  // what settings and store say about each of them
  const std::vector<Form> forms = Forms();
  const std::time_t until = std::time(nullptr) + static_cast<std::time_t>(seconds);
  uint64_t run = 0;
  int code = 0;
  for (; code == 0 && run < runs && (seconds == 0 || std::time(nullptr) < until); ++run) {
    fuzz::Mutator mutator(seed * 1'000'000'007 + run);
    for (const Form& form : forms) {
      if (run % form.every != 0) continue;
      const std::string text = mutator.Damage(form.corpus[mutator.Below(form.corpus.size())]);
      const Rule broken = form.run(text);
      if (broken == nullptr) continue;
      std::printf("%s, seed %llu, run %llu: %s\n", form.name, static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(run), broken);
      std::fwrite(text.data(), 1, text.size(), stdout);
      code = 1;
    }
  }
  std::filesystem::remove_all(Folder());
  if (code == 0) {
    std::printf("%llu damaged pieces for %zu readers: nothing broken\n",
                static_cast<unsigned long long>(run), forms.size());
  }
  return code;
}
