// SPDX-License-Identifier: Apache-2.0
// One steady period of a program as planners and bounds see it: launches, the tensors they touch,
// and the machine. The Layered Graph Model of the vTensor paper is this object: layers are
// launches, edges are touches. Values only; safe to copy between threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atp::policy {

using Bytes = uint64_t;

struct Tensor {
  std::string id;  // name in the exchange form
  Bytes bytes = 0;
  std::string kind;    // "weight", "activation", ... : a label, no decision depends on it
  bool global = true;  // lives across periods; others are born at their first access and dead after
                       // their last
  std::string extra;   // a JSON object with the keys of the exchange form that mean nothing here;
                       // empty = none
};

struct Launch {
  std::string name;
  double seconds = 0;            // with everything resident
  std::vector<uint32_t> reads;   // indices into Trace::tensors
  std::vector<uint32_t> writes;  // a tensor in both is updated in place
  Bytes workspace = 0;           // needed during this launch only
  int stream = 0;
  std::string extra;  // as in Tensor
  // Those of `writes` whose content has been dropped: dead before this launch, which makes them
  // again, though they live across periods (recompute.h). Not in any exchange form.
  std::vector<uint32_t> restores;
};

struct LinkRates {  // bytes per second
  double h2d = 0, d2h = 0;
  double duplex_h2d = 0,
         duplex_d2h = 0;  // each direction while both are busy; 0 = independent links
};

struct Trace {
  std::string name, source;
  Bytes device_bytes = 0;
  Bytes host_bytes = 0;  // 0 = no limit
  LinkRates link;
  std::vector<Tensor> tensors;
  std::vector<Launch> launches;
  std::string extra;  // as in Tensor, of the header
};

}  // namespace atp::policy
