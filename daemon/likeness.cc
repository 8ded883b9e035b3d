// SPDX-License-Identifier: Apache-2.0
#include "daemon/likeness.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace atp::daemon {
namespace {

double Share(size_t common, size_t a, size_t b) {
  return std::max(a, b) == 0 ? 1
                             : static_cast<double>(common) / static_cast<double>(std::max(a, b));
}

double CodeInCommon(const protocol::Fingerprint& a, const protocol::Fingerprint& b) {
  std::vector<uint64_t> common;
  std::set_intersection(a.code.begin(), a.code.end(), b.code.begin(), b.code.end(),
                        std::back_inserter(common));
  return Share(common.size(), a.code.size(), b.code.size());
}

double AllocationsInCommon(const protocol::Fingerprint& a, const protocol::Fingerprint& b) {
  const size_t both = std::min(a.allocations.size(), b.allocations.size());
  size_t equal = 0;
  for (size_t i = 0; i < both; ++i) equal += a.allocations[i] == b.allocations[i];
  return Share(equal, a.allocations.size(), b.allocations.size());
}

class Hash {  // FNV-1a
 public:
  void Add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      value_ = (value_ ^ (value >> (8 * byte) & 0xff)) * 0x100000001b3u;
    }
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace

double Likeness(const protocol::Fingerprint& a, const protocol::Fingerprint& b) {
  return (2 * CodeInCommon(a, b) + AllocationsInCommon(a, b)) / 3;
}

uint64_t KeyOf(const protocol::Learned& learned) {
  const protocol::Fingerprint& fingerprint = learned.fingerprint;
  Hash key;
  for (const char c : fingerprint.device) key.Add(static_cast<unsigned char>(c));
  key.Add(fingerprint.device_bytes);
  key.Add(fingerprint.code.size());
  for (const uint64_t hash : fingerprint.code) key.Add(hash);
  for (const uint64_t bytes : fingerprint.allocations) key.Add(bytes);
  uint64_t phases = 0;  // their order means nothing
  for (const protocol::LearnedPhase& phase : learned.phases) {
    Hash hash;
    for (const auto& launch : phase.launches) hash.Add(launch.signature);
    for (const auto& tensor : phase.tensors) hash.Add(tensor.bytes);
    phases += hash.value();
  }
  key.Add(phases);
  return key.value();
}

}  // namespace atp::daemon
