// SPDX-License-Identifier: Apache-2.0
#include "shim/parsed_texts.h"

#include <mutex>
#include <unordered_map>

namespace atp::shim {

const ptx::ParsedModule& ParsedText(const std::shared_ptr<const std::string>& text) {
  static std::mutex mutex;
  // By address: kernel_images.h never gives a text up. Never destroyed: planning may go on at exit.
  static auto* modules =
      new std::unordered_map<const std::string*, std::unique_ptr<ptx::ParsedModule>>;
  std::lock_guard lock(mutex);
  const auto [at, added] = modules->try_emplace(text.get());
  if (added) {
    at->second = std::make_unique<ptx::ParsedModule>();
    std::string error;
    // An opcode that is not known ends the kernel that has it, not the module.
    const auto any = [](std::string_view) { return true; };
    if (!ptx::ParseModule(*text, any, at->second.get(), &error)) {
      at->second = std::make_unique<ptx::ParsedModule>();
    }
  }
  return *at->second;
}

}  // namespace atp::shim
