// SPDX-License-Identifier: Apache-2.0
// Trains the transformer of train_transformer data-parallel: one process a card, each with batches
// of its own; gradients are averaged through buffers that the processes share by IPC handles. An
// ordinary CUDA program. Without --rank it starts one process for each rank itself, the second half
// of them with CUDA_VISIBLE_DEVICES in reverse order, as some launchers do; with --rank it is one
// of them. The first rank prints; all must end with the same weights. --check follows on the CPU
// with all batches as one.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdio>
#include <memory>

#include "examples/ddp/average.cuh"
#include "examples/support/text.h"
#include "examples/support/training.h"
#include "examples/transformer/model.cuh"
#include "examples/transformer/reference.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-3;

struct Settings {
  Config config;
  long iterations = 10, ranks = 4, rank = -1, device = 0, exchange = 1024;
  std::string meet, text;
  bool check = false;
};

Settings ParseSettings(int argc, char** argv) {
  long layers = 4, width = 512, heads = 8, batch = 1, sequence = 32, seed = 1;
  Settings s;
  Options options("trains a small transformer with one process a card");
  options.Add("--layers", &layers, 1, 1000, "number of layers");
  options.Add("--width", &width, 4, 65536, "width of the model, a multiple of 4 and of --heads");
  options.Add("--heads", &heads, 1, 1024, "attention heads");
  options.Add("--batch", &batch, 1, 65535, "sequences of a rank per iteration");
  options.Add("--sequence", &sequence, 1, 65536, "tokens per sequence");
  options.Add("--iterations", &s.iterations, 1, 1000000000, "training steps");
  options.Add("--seed", &seed, 0, 2147483647, "seed of weights and batches");
  options.Add("--ranks", &s.ranks, 1, kMostRanks, "processes");
  options.Add("--rank", &s.rank, 0, kMostRanks - 1, "which of them this one is; else all start");
  options.Add("--device", &s.device, 0, 1000, "the card of this rank, as it numbers them");
  options.Add("--exchange", &s.exchange, 1, 1 << 20, "KiB of each of the buffers that are shared");
  options.Add("--meet", &s.meet, "with --rank: a new file by which the ranks find each other");
  options.Add("--text", &s.text, "file to learn from (default: tiny.txt beside the program)");
  options.Add("--check", &s.check, "compare with a reference on the CPU; slow");
  options.Parse(argc, argv);
  if (width % heads || width % 4) Options::Refuse("--width is no multiple of 4 and of --heads");
  if (s.rank >= s.ranks) Options::Refuse("--rank is not below --ranks");
  if (s.rank >= 0 && s.meet.empty()) Options::Refuse("--rank needs --meet");
  s.config = {int(layers), int(width), int(heads), int(batch), int(sequence), uint32_t(seed)};
  if (s.text.empty()) s.text = DefaultText();
  return s;
}

// Follows on the CPU, with the batches of all ranks as one.
class Checker {
 public:
  Checker(const Settings& s, const std::vector<unsigned char>& text)
      : s_(s), text_(text), reference_(Whole(s)) {}

  void Step(int iteration, const AdamW& adam, const Model& model, float loss) {
    std::vector<int> tokens, targets, all_tokens, all_targets;
    for (int r = 0; r < s_.ranks; ++r) {
      CutBatch(text_, {s_.config.batch, s_.config.sequence, s_.config.seed},
               int((iteration - 1) * s_.ranks) + r + 1, &tokens, &targets);
      all_tokens.insert(all_tokens.end(), tokens.begin(), tokens.end());
      all_targets.insert(all_targets.end(), targets.begin(), targets.end());
    }
    const float expected = reference_.ForwardBackward(all_tokens, all_targets);
    NoteStep(model, reference_, model.shapes(), loss, expected, ".gradient", &worst_);
    reference_.Update(adam, iteration);
  }
  bool Report() const { return worst_.Report(); }

 private:
  static Config Whole(const Settings& s) {
    Config whole = s.config;
    whole.batch *= int(s.ranks);
    return whole;
  }
  const Settings& s_;
  const std::vector<unsigned char>& text_;
  Reference reference_;
  WorstError worst_{kTolerance};
};

bool Agree(Meeting* meeting, const Model& model) {
  meeting->mine().checksum = WeightsChecksum(model, model.shapes().size());
  meeting->Barrier();
  bool agree = true;
  for (int r = 0; r < meeting->ranks(); ++r) {
    agree = agree && meeting->of(r).checksum == meeting->mine().checksum;
  }
  if (meeting->rank() != 0) return agree;
  PrintChecksum(meeting->mine().checksum);
  std::printf("weights of %d ranks %s\n", meeting->ranks(), agree ? "equal" : "DIFFER");
  return agree;
}

bool Train(const Settings& s) {
  CHECK_CUDA(cudaSetDevice(int(s.device)));
  Meeting meeting(s.meet, int(s.rank), int(s.ranks));
  const std::vector<unsigned char> text = ReadText(s.text, s.config.sequence);
  AdamW adam;
  adam.learning_rate = std::fmin(1e-3f, 0.256f / float(s.config.width));
  DeviceMemory memory;
  Average average(&meeting, &memory, size_t(s.exchange) << 10);
  Model model(s.config, &memory);
  int* tokens = memory.Allocate<int>("tokens", s.config.tokens());
  int* targets = memory.Allocate<int>("targets", s.config.tokens());
  const bool first = s.rank == 0;
  if (first) std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());

  std::vector<int> host_tokens, host_targets;
  Stopwatch watch;
  std::unique_ptr<Checker> checker;
  if (first && s.check) checker = std::make_unique<Checker>(s, text);
  for (int i = 1; i <= s.iterations; ++i) {
    CutBatch(text, {s.config.batch, s.config.sequence, s.config.seed},
             int((i - 1) * s.ranks + s.rank) + 1, &host_tokens, &host_targets);
    const size_t bytes = host_tokens.size() * sizeof(int);
    watch.Start();
    CHECK_CUDA(cudaMemcpy(tokens, host_tokens.data(), bytes, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(targets, host_targets.data(), bytes, cudaMemcpyHostToDevice));
    model.ForwardBackward(tokens, targets);
    for (size_t p = model.shapes().size(); p-- > 0;) {
      average(model.gradient(p), model.shapes()[p].count);
    }
    model.Update(adam, i);
    meeting.mine().ms = watch.Stop();
    meeting.mine().loss = model.Loss();
    meeting.Barrier();
    if (first) {  // the time is that of the slowest rank
      float loss = 0, ms = 0;
      for (int r = 0; r < meeting.ranks(); ++r) {
        loss += meeting.of(r).loss / float(meeting.ranks());
        ms = std::fmax(ms, meeting.of(r).ms);
      }
      std::printf("iter %d  loss %.6f  ms %.4f\n", i, loss, ms);
      std::fflush(stdout);
      if (checker) checker->Step(i, adam, model, loss);
    }
    meeting.Barrier();
  }
  const bool agree = Agree(&meeting, model);
  const bool right = !checker || checker->Report();
  average.Close();
  memory.FreeAll();
  return agree && right;
}

// One process for each rank. The first half sees the cards as they are numbered and takes the even
// ones; to the second half they are shown in reverse: with four, as CUDA_VISIBLE_DEVICES=3,1.
int StartAll(const Settings& s, int argc, char** argv) {
  // Without a name in any folder, so that nothing is left behind however the processes end.
  const int file = memfd_create("train_ddp", 0);
  if (file < 0) Options::Refuse("the ranks have no file to meet in");
  const std::string meet = "/proc/self/fd/" + std::to_string(file);
  const long half = (s.ranks + 1) / 2;
  std::string reversed;
  for (long d = s.ranks / 2; d-- > 0;) {
    reversed += std::to_string(2 * d + 1) + (d > 0 ? "," : "");
  }
  std::vector<pid_t> children;
  for (long r = 0; r < s.ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      std::vector<std::string> words(argv, argv + argc);
      const long device = r < half ? 2 * r : r - half;
      for (const auto& [name, value] : {std::pair{"--rank", std::to_string(r)},
                                        {"--device", std::to_string(device)},
                                        {"--meet", meet}}) {
        words.insert(words.end(), {name, value});
      }
      if (r >= half) setenv("CUDA_VISIBLE_DEVICES", reversed.c_str(), 1);
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv("/proc/self/exe", arguments.data());
      _exit(kExitCudaError);
    }
    children.push_back(child);
  }
  // When one fails the others would wait for it.
  int code = 0;
  for (size_t left = children.size(); left > 0; --left) {
    int status = 0;
    const pid_t ended = wait(&status);
    const int its = WIFEXITED(status) ? WEXITSTATUS(status) : kExitCudaError;
    if (its == 0 || code != 0) continue;
    code = its;
    for (const pid_t child : children) {
      if (child != ended) kill(child, SIGTERM);
    }
  }
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = ParseSettings(argc, argv);
  if (settings.rank < 0) return StartAll(settings, argc, argv);
  return Train(settings) ? 0 : example::kExitWrongResult;
}
