// SPDX-License-Identifier: Apache-2.0
#include "cli/generate.h"

#include <iostream>
#include <memory>

#include "cli/error.h"
#include "cli/size.h"
#include "cli/trace_input.h"
#include "policy/synthetic/synthetic.h"
#include "policy/trace_json.h"

namespace atp::cli {
namespace {

struct GenerateOptions {
  policy::SyntheticOptions synthetic;
  std::string activation = "256MiB", weight = "64MiB", memory = "16GiB", output;
};

void Run(GenerateOptions options) {
  options.synthetic.activation = *ParseBytes(options.activation);
  options.synthetic.weight = *ParseBytes(options.weight);
  options.synthetic.device_bytes = *ParseBytes(options.memory);
  const std::string text = policy::WriteTrace(policy::MakeSynthetic(options.synthetic));
  if (options.output.empty()) {
    std::cout << text;
  } else {
    WriteFile(options.output, text);
  }
}

}  // namespace

void AddGenerateCommand(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  policy::SyntheticOptions* o = &options->synthetic;
  std::vector<std::string> names;
  std::string kinds;
  for (const policy::SyntheticKind& k : policy::SyntheticKinds()) {
    names.emplace_back(k.name);
    kinds += "\n  " + std::string(k.name) + ": " + std::string(k.summary);
  }
  CLI::App* command = app.add_subcommand(
      "generate",
      "Writes a synthetic trace of one steady period (JSON lines). Sizes and times are "
      "made up from the options: they are no measurements.");
  auto size = [](const std::string& text) {
    return ParseBytes(text) ? std::string() : "\"" + text + "\": " + std::string(kSizeForms);
  };
  command->add_option("--kind", o->kind, "shape of the program:" + kinds)
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->add_option("--seed", o->seed, "for what is drawn")->capture_default_str();
  command->add_option("--layers", o->layers, "layers")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--steps", o->steps, "micro-batches, tokens or sequences in a period")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--experts", o->experts, "of each layer")
      ->check(CLI::Range(2, 100000))
      ->capture_default_str();
  command->add_option("--activation", options->activation, "bytes of a layer's activation")
      ->check(size)
      ->capture_default_str();
  command->add_option("--weight", options->weight, "bytes of a layer's weight")
      ->check(size)
      ->capture_default_str();
  command->add_option("--intensity", o->intensity, "operations for each byte touched")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--memory", options->memory, "device memory that the trace names")
      ->check(size)
      ->capture_default_str();
  command->add_option("--h2d", o->link.h2d, "bytes per second to the device")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--d2h", o->link.d2h, "bytes per second to the host")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--output", options->output, "file; default: stdout");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
