// SPDX-License-Identifier: Apache-2.0
#include "cli/convert.h"

#include <charconv>
#include <memory>

#include "cli/chrome_trace.h"
#include "cli/error.h"
#include "cli/trace_convert.h"
#include "cli/trace_input.h"
#include "policy/trace_json.h"
#include "protocol/trace_writer.h"

namespace atp::cli {
namespace {

struct ConvertOptions {
  std::string from, to, form, launches;
  bool period = false, salvage = false;
};

// By the ending of the file, when --to is not given.
std::string FormOf(const ConvertOptions& options) {
  if (!options.form.empty()) return options.form;
  auto ends = [&](const char* text) { return options.to.ends_with(text); };
  if (ends(".chrome.json")) return "chrome";
  if (ends(".json") || ends(".jsonl")) return "json";
  if (ends(".atp") || ends(".atptrace")) return "binary";
  throw CommandError(2,
                     options.to + ": the ending names no form; give --to json, binary or chrome");
}

std::string Binary(const protocol::TraceFile& file) {
  std::string bytes;
  protocol::WriteTrace(file, [&](const uint8_t* data, size_t size) {
    bytes.append(reinterpret_cast<const char*>(data), size);
    return true;
  });
  return bytes;
}

policy::LaunchRange ParseRange(const std::string& text) {
  policy::LaunchRange range;
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, range.begin);
  const bool colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  const auto last = std::from_chars(colon ? first.ptr + 1 : end, end, range.end);
  if (!colon || last.ec != std::errc() || last.ptr != end || range.begin >= range.end) {
    throw CommandError(2, "--launches " + text + ": wanted is FIRST:END, such as 100:140");
  }
  return range;
}

void Run(const ConvertOptions& options) {
  const std::string form = FormOf(options);
  AnyTrace trace = ReadAnyTrace(options.from, options.salvage);
  const auto* raw = std::get_if<policy::RawTrace>(&trace);
  if (!options.launches.empty()) {
    const policy::LaunchRange range = ParseRange(options.launches);
    if (raw == nullptr || range.end > raw->launches.size()) {
      throw CommandError(kExitUnreadable,
                         options.from + ": no whole run with the launches " + options.launches);
    }
    trace = policy::ToPeriod(*raw, range);
  } else if (options.period && raw != nullptr) {
    trace = ReadPeriod(options.from);
  }
  std::visit(
      [&](const auto& t) {
        if (form == "binary") {
          WriteFile(options.to, Binary(ToFile(t)));
        } else if (form == "chrome") {
          WriteFile(options.to, ChromeTrace(t));
        } else if constexpr (std::is_same_v<std::decay_t<decltype(t)>, policy::Trace>) {
          WriteFile(options.to, policy::WriteTrace(t));
        } else {
          WriteFile(options.to, policy::WriteRawTrace(t));
        }
      },
      trace);
}

}  // namespace

void AddConvertCommand(CLI::App& app) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = app.add_subcommand(
      "convert", "Writes a trace in another form: JSON lines, binary, or for a trace viewer.");
  command->add_option("FROM", options->from, "trace, JSON lines or binary")->required();
  command->add_option("TO", options->to, "file to write")->required();
  command
      ->add_option("--to", options->form,
                   "form: json, binary, chrome (chrome://tracing, Perfetto); default: by the "
                   "ending .json or .jsonl, .atp, .chrome.json")
      ->check(CLI::IsMember({"json", "binary", "chrome"}));
  command->add_flag("--period", options->period,
                    "of a whole run, its last steady period as tensors");
  command
      ->add_option("--launches", options->launches,
                   "FIRST:END: of a whole run, these launches (END is left out) as tensors, as if "
                   "they were repeated")
      ->excludes("--period");
  command->add_flag("--salvage", options->salvage,
                    "take a binary trace that ends early without its last, incomplete chunk");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
