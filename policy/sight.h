// SPDX-License-Identifier: Apache-2.0
// Sight inside allocations: from the pointers that the launches of a period were given to the bytes
// that they touch. Frameworks keep many tensors in one large allocation, and a pointer does not say
// how far its kernel reaches. Two kinds of evidence cost nothing at run time (the MSched paper
// finds extents by the second, measured with instrumentation):
//   cuts     a pointer into the same allocation begins another object, so a kernel reaches no
//            farther than to the next pointer that the period shows;
//   classes  the same kernel with the same geometry and scalars reaches equally far from an
//            argument, whatever tensor it is given. Where most launches of a class agree, the odd
//            ones follow: a cut that came from another use of the memory (a cache that splits a
//            freed block) does not shorten them, and a gap behind the tensor does not lengthen
//            them.
//   fits     what classes of one kernel agree on, each with other scalars or another grid, may fit
//            a family of extents.h. Where a fit has been confirmed beyond what it needs, it
//            shortens the reach of launches that have no class to follow: of a last batch, an odd
//            shape.
// How sure a reach is: 1 where it is known or nothing cuts the allocation; else by how many tensors
// of its class show it, as Laplace's rule of succession has it: (those that do + 1) / (all + 2); of
// a fit what extents.h says.
// A wrong reach costs time, never data: too short and the rest faults, too long and it is moved for
// nothing. Pure functions; any thread. O(t log t) for t touches, memory linear in touches plus
// what the atoms list.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/extents.h"
#include "policy/trace.h"

namespace atp::policy {

struct SeenTouch {
  uint32_t allocation = 0;  // index into SeenPeriod::allocations
  Bytes offset = 0;         // of the pointer
  Bytes bytes = 0;          // known extent (a copy, a set, a tensor map); 0 = not known
  bool reads = true, writes = true;
};

struct SeenLaunch {
  uint64_t kernel = 0;  // identity; copies and sets have one of their own
  uint64_t shape = 0;   // hash of its geometry and of every argument that is no pointer of ours
  double seconds = 0;
  uint32_t first_touch = 0, touch_count = 0;  // in SeenPeriod::touches
};

struct SeenPeriod {
  std::vector<Bytes> allocations;  // sizes
  // Per launch; empty or shorter = not known. Launches of equal `SeenLaunch::shape` have equal
  // ones.
  std::vector<LaunchShape> scalars;
  std::vector<SeenLaunch> launches;
  std::vector<SeenTouch>
      touches;  // those of a launch stand together, in the order of its arguments
};

// For each touch the bytes from its pointer on: what is known, or else what cuts, classes and fits
// say.
// At least 1, never beyond the allocation. `confidence` (may be null): of each.
std::vector<Bytes> PredictReaches(const SeenPeriod& period,
                                  std::vector<double>* confidence = nullptr);

// A part of an allocation, whole granules, of which every launch touches all or nothing.
struct Atom {
  uint32_t allocation = 0;
  Bytes offset = 0, bytes = 0;
  double confidence = 1;  // of the surest touch that reaches it
  bool operator==(const Atom&) const = default;
};

struct Sight {
  Trace trace;  // tensor i is atoms[i]; launches are those of the period, nameless
  std::vector<Atom> atoms;
};

// Cuts allocations where the touches (of `reaches` bytes, rounded out to `granule`) begin and end.
// What no launch touches is in no atom. Atoms are ordered by allocation and offset. `confidence` of
// each reach; empty = all are certain.
Sight SplitAtTouches(const SeenPeriod& period, const std::vector<Bytes>& reaches, Bytes granule,
                     const std::vector<double>& confidence = {});

}  // namespace atp::policy
