// SPDX-License-Identifier: Apache-2.0
// Sizes and shares of memory as people write them: "16GiB", "16G", "512MiB", "1.5G", "4096", "80%",
// and per device "0=16GiB,1=80%". Used to refuse a malformed value before a program starts. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace atp::cli {

// What an error message says about the grammar.
inline constexpr std::string_view kSizeForms =
    "write a size as 16GiB, 512MiB, 16G or a number of bytes";

struct Share {  // one of the two
  uint64_t bytes = 0;
  double percent = 0;
};

// Nothing when malformed, zero, or above 2^64 - 1. K, M, G and T are powers of 1024, with or
// without "iB".
std::optional<uint64_t> ParseBytes(std::string_view text);
// A size or a percentage above 0 and at most 100.
std::optional<Share> ParseShare(std::string_view text);
// "SHARE" for every device (key -1), or "DEVICE=SHARE,..."; nothing when any part is malformed or
// named twice.
std::optional<std::map<int, Share>> ParseBudget(std::string_view text);

// "1.5 GiB", for messages.
std::string FormatBytes(uint64_t bytes);

}  // namespace atp::cli
