// SPDX-License-Identifier: Apache-2.0
#include "shim/kernel_images.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace atp::shim {
namespace {

// Layout: fatbinary_section.h of the CUDA toolkit, and what nvcc writes.
struct Wrapper {
  static constexpr uint32_t kMagic = 0x466243b1;
  uint32_t magic, version;
  const void* container;
};
struct ContainerHeader {
  static constexpr uint32_t kMagic = 0xba55ed50;
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of the entries that follow
};
struct EntryHeader {
  static constexpr uint16_t kPtx = 1;
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;             // of the payload, padded
  uint32_t compressed_bytes;  // 0 = the payload is stored as it is
};

template <typename T>
T Read(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

constexpr uint32_t kElf = 0x464c457f;
constexpr size_t kMostText = 64u << 20;
using Text = std::shared_ptr<const std::string>;

struct Source {
  Text text;
  uint64_t code;  // of its image; 0 = not known
};

struct Known {
  bool exact = true;
  std::vector<WordAccess> words;
  std::vector<Source> sources;
};

struct Store {
  std::mutex mutex;
  std::vector<Source> unread;
  size_t unread_bytes = 0, kept_bytes = 0;
  std::unordered_map<std::string, Known> kernels;
  std::deque<std::vector<WordAccess>> given;  // never freed: launch hooks hold views
  std::unordered_set<uint64_t> incomplete;    // code of images that are not kept in full
};
// Never destroyed: hooks run until the very end.
Store& TheStore() {
  static Store* store = new Store;
  return *store;
}

void MarkIncomplete(uint64_t code) {
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  store.incomplete.insert(code);
}

void Keep(std::string_view text, uint64_t code) {
  if (text.find(".entry") == std::string_view::npos) return;
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  if (store.unread_bytes + text.size() > kMostText) {
    store.incomplete.insert(code);
    return;
  }
  store.unread_bytes += text.size();
  store.unread.push_back({std::make_shared<const std::string>(text), code});
}

void KeepContainer(const char* data, uint64_t code) {
  const auto header = Read<ContainerHeader>(data);
  const char* at = data + header.header_bytes;
  const char* const end = at + header.bytes;
  while (end - at >= static_cast<ptrdiff_t>(sizeof(EntryHeader))) {
    const auto entry = Read<EntryHeader>(at);
    const auto left = static_cast<uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
        entry.bytes > left - entry.header_bytes) {
      return MarkIncomplete(code);
    }
    const char* text = at + entry.header_bytes;
    if (entry.kind == EntryHeader::kPtx) {
      if (entry.compressed_bytes == 0) {
        Keep({text, strnlen(text, entry.bytes)}, code);
      } else {
        MarkIncomplete(code);
      }
    }
    at += entry.header_bytes + entry.bytes;
  }
}

// `source`: where it stands, without a text when that is not kept.
void Merge(KernelAccess access, const Source& source, Store* store) {
  const auto [at, added] = store->kernels.try_emplace(access.name);
  Known& known = at->second;
  std::vector<Source>& sources = known.sources;
  const auto same = [&](const Source& other) {
    return other.code == source.code && *other.text == *source.text;
  };
  if (source.text != nullptr && std::none_of(sources.begin(), sources.end(), same)) {
    sources.push_back(source);
  }
  known.exact &= access.exact && (added || known.words.size() == access.words.size());
  if (added) known.words.resize(access.words.size());
  for (size_t i = 0; known.exact && i < known.words.size(); ++i) {
    known.words[i].reads |= access.words[i].reads;
    known.words[i].writes |= access.words[i].writes;
  }
}

// Machine code ends with its table of sections, or of segments.
size_t BytesOfElf(const char* bytes) {
  const auto header = Read<Elf64_Ehdr>(bytes);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return sizeof header;
  const uint64_t sections = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  const uint64_t segments = header.e_phoff + uint64_t{header.e_phnum} * header.e_phentsize;
  return std::max({sections, segments, uint64_t{sizeof header}});
}

}  // namespace

std::string_view BytesOfImage(const void* image) {
  if (image == nullptr) return {};
  const auto* bytes = static_cast<const char*>(image);
  // Text may be shorter than a magic number: look no further than its end.
  if (strnlen(bytes, sizeof(uint32_t)) == sizeof(uint32_t)) {
    const auto magic = Read<uint32_t>(bytes);
    if (magic == Wrapper::kMagic) return BytesOfImage(Read<Wrapper>(bytes).container);
    if (magic == ContainerHeader::kMagic) {
      const auto header = Read<ContainerHeader>(bytes);
      return {bytes, header.header_bytes + header.bytes};
    }
    if (magic == kElf) return {bytes, BytesOfElf(bytes)};
  }
  return bytes;
}

void RememberImage(const void* image, uint64_t code) {
  if (image == nullptr) return;
  const auto* bytes = static_cast<const char*>(image);
  // Text may be shorter than a magic number: look no further than its end.
  if (strnlen(bytes, sizeof(uint32_t)) == sizeof(uint32_t)) {
    const auto magic = Read<uint32_t>(bytes);
    if (magic == Wrapper::kMagic) return RememberImage(Read<Wrapper>(bytes).container, code);
    if (magic == ContainerHeader::kMagic) return KeepContainer(bytes, code);
    if (magic == kElf) return;
  }
  // The driver will read it to its end as text, or refuse it by its first bytes.
  const size_t blank = std::strspn(bytes, " \t\r\n");
  if (bytes[blank] == '.' || bytes[blank] == '/') Keep(bytes, code);
}

void RememberImageFile(const char* path, uint64_t code) {
  FILE* file = path != nullptr ? std::fopen(path, "rbe") : nullptr;
  if (file == nullptr) return;
  std::string text;
  char part[1 << 16];
  for (size_t got; (got = std::fread(part, 1, sizeof part, file)) > 0;) {
    text.append(part, got);
    if (text.size() > kMostText) break;
  }
  std::fclose(file);
  const size_t blank = std::strspn(text.c_str(), " \t\r\n");
  if (text[blank] == '.' || text[blank] == '/') Keep(text.c_str(), code);
}

std::span<const WordAccess> AccessOf(const char* kernel) {
  if (kernel == nullptr) return {};
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  for (Source& source : std::exchange(store.unread, {})) {
    const Text text = source.text;
    if (store.kept_bytes + text->size() > kMostText) {
      source.text = nullptr;
      store.incomplete.insert(source.code);
    } else {
      store.kept_bytes += text->size();
    }
    for (KernelAccess& access : ReadKernelAccess(*text)) {
      Merge(std::move(access), source, &store);
    }
  }
  store.unread_bytes = 0;
  const auto found = store.kernels.find(kernel);
  if (found == store.kernels.end() || !found->second.exact) return {};
  return store.given.emplace_back(found->second.words);
}

std::vector<Text> TextsWith(const char* kernel) {
  if (kernel == nullptr) return {};
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  const auto found = store.kernels.find(kernel);
  if (found == store.kernels.end()) return {};
  std::vector<Text> texts;
  for (const Source& source : found->second.sources) {
    const auto same = [&](const Text& other) { return *other == *source.text; };
    if (std::none_of(texts.begin(), texts.end(), same)) texts.push_back(source.text);
  }
  return texts;
}

std::vector<Text> TextsOf(const char* kernel, uint64_t code) {
  if (kernel == nullptr || code == 0) return {};
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  const auto found = store.kernels.find(kernel);
  if (found == store.kernels.end() || store.incomplete.count(code) > 0) return {};
  std::vector<Text> texts;
  for (const Source& source : found->second.sources) {
    if (source.code == code) texts.push_back(source.text);
  }
  return texts;
}

}  // namespace atp::shim
