// SPDX-License-Identifier: Apache-2.0
#include "shim/shape_follower.h"

#include <cstddef>
#include <utility>

namespace atp::shim {

void ShapeFollower::Add(std::vector<uint64_t> identities) {
  Shape shape;
  shape.border.resize(identities.size());
  for (size_t i = 1, k = 0; i < identities.size(); ++i) {
    while (k > 0 && identities[i] != identities[k]) k = shape.border[k - 1];
    if (identities[i] == identities[k]) ++k;
    shape.border[i] = static_cast<uint32_t>(k);
  }
  shape.identities = std::move(identities);
  shapes_.push_back(std::move(shape));
}

uint32_t ShapeFollower::Feed(uint64_t identity) {
  uint32_t done = kNone;
  for (uint32_t number = 0; number < shapes_.size(); ++number) {
    Shape& shape = shapes_[number];
    const auto length = static_cast<uint32_t>(shape.identities.size());
    uint32_t& at = shape.matched;
    while (at > 0 && (at == length || shape.identities[at] != identity)) at = shape.border[at - 1];
    if (shape.identities[at] == identity) ++at;
    if (at < length) continue;
    if (done == kNone || shapes_[done].identities.size() < length) done = number;
  }
  return done;
}

}  // namespace atp::shim
