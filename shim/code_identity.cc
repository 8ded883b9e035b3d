// SPDX-License-Identifier: Apache-2.0
#include "shim/code_identity.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_map>

#include "shim/kernel_images.h"

namespace atp::shim {
namespace {

constexpr size_t kWhole = 256u << 10;  // up to this every byte counts
constexpr size_t kPieces = 64, kPieceBytes = 4096;
constexpr size_t kMostImages = 4096;  // remembered

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

// read(offset, bytes) gives a piece of the image.
template <typename Read>
uint64_t HashOfPieces(uint64_t bytes, Read read) {
  uint64_t hash = bytes;
  if (bytes <= kWhole) return HashOfBytes(read(0, bytes), hash);
  for (uint64_t i = 0; i < kPieces; ++i) {
    const uint64_t at = (bytes - kPieceBytes) * i / (kPieces - 1);
    hash = HashOfBytes(read(at, kPieceBytes), hash);
  }
  return hash;
}

struct Store {
  std::mutex mutex;
  std::unordered_map<const void*, uint64_t> modules;
  std::set<uint64_t> images;
};
// Never destroyed: hooks run until the very end.
Store& TheStore() {
  static Store* store = new Store;
  return *store;
}

}  // namespace

uint64_t HashOfBytes(std::string_view bytes, uint64_t seed) {
  uint64_t hash = Mix(seed, bytes.size());
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = Mix(hash, word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  return Mix(hash, rest);
}

uint64_t HashOfImage(const void* image) {
  const std::string_view bytes = BytesOfImage(image);
  return HashOfPieces(bytes.size(),
                      [&](uint64_t at, uint64_t length) { return bytes.substr(at, length); });
}

uint64_t HashOfImageFile(const char* path) {
  const int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return 0;
  struct stat status {};
  uint64_t hash = 0;
  if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
    std::vector<char> piece(kWhole);
    hash = HashOfPieces(static_cast<uint64_t>(status.st_size), [&](uint64_t at, uint64_t length) {
      const ssize_t got = pread(fd, piece.data(), length, static_cast<off_t>(at));
      return std::string_view(piece.data(), got > 0 ? static_cast<size_t>(got) : 0);
    });
  }
  close(fd);
  return hash;
}

void RememberCode(const void* module, uint64_t hash) {
  if (module == nullptr || hash == 0) return;
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  if (store.modules.size() >= kMostImages) store.modules.clear();  // then names must do
  store.modules[module] = hash;
  store.images.insert(hash);
  if (store.images.size() > kMostImages) store.images.erase(std::prev(store.images.end()));
}

uint64_t CodeOf(const void* module) {
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  const auto found = store.modules.find(module);
  return found != store.modules.end() ? found->second : 0;
}

std::vector<uint64_t> LoadedCode() {
  Store& store = TheStore();
  std::lock_guard lock(store.mutex);
  return {store.images.begin(), store.images.end()};
}

}  // namespace atp::shim
