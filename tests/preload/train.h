// SPDX-License-Identifier: Apache-2.0
// The training run that several tests start, as a command. Of width 512 and sequence 16 it takes
// 54 MiB in tensors of 1 to 4 MiB.
#pragma once

#include <string>
#include <vector>

namespace atp::preload {

inline std::vector<std::string> TrainCommand(int width, int sequence, int iterations) {
  return {ATP_EXAMPLES "/train_transformer",
          "--layers",
          "1",
          "--width",
          std::to_string(width),
          "--sequence",
          std::to_string(sequence),
          "--iterations",
          std::to_string(iterations)};
}

}  // namespace atp::preload
