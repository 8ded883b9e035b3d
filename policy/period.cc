// SPDX-License-Identifier: Apache-2.0
#include "policy/period.h"

#include <algorithm>
#include <array>
#include <vector>

#include "policy/launch_history.h"
#include "policy/phase_book.h"

namespace atp::policy {
namespace {

constexpr uint32_t kPhases = 12;
constexpr size_t kCandidates = 8;
constexpr uint32_t kResume = 2;  // launches that must follow the broken place to go on from there
// A longer repetition replaces known phases when more than 1/64 of it was not predicted by them.
constexpr uint64_t kUnpredictedShare = 64;

// Suggests distances at which the stream may repeat: the last place where the same w launches in a
// row occurred, for several w. Longer stretches are looked up only at places that their own hash
// selects, about every w/8 launches, so that the cost does not grow with w.
class Repetitions {
 public:
  static constexpr std::array<uint32_t, 5> kWidths = {1, 8, 64, 512, 4096};

  template <typename Visit>
  void Push(const LaunchHistory& history, Visit visit) {
    std::array<uint64_t, kWidths.size()> hashes;
    size_t count = 0;
    const uint64_t known = history.count() - history.oldest();
    for (; count < kWidths.size() && kWidths[count] <= known; ++count) {
      hashes[count] = history.Hash(history.count() - kWidths[count], history.count());
      if (kWidths[count] <= 8) __builtin_prefetch(&slots_[count][hashes[count] % kSlots], 1);
    }
    for (size_t s = 0; s < count; ++s) {
      const uint32_t width = kWidths[s];
      const uint64_t hash = hashes[s];
      if (width > 8 && (hash * 0x9E3779B97F4A7C15ull >> 32 & (width / 8 - 1)) != 0) continue;
      Slot& slot = slots_[s][hash % kSlots];
      const auto tag = static_cast<uint32_t>(hash >> 29);
      const auto end = static_cast<uint32_t>(history.count());
      if (slot.tag == tag && slot.end > 0) visit(end - slot.end);
      slot = {tag, end};
    }
  }

 private:
  static constexpr size_t kSlots = 1u << 14;
  // Parts of the hash and of the launch's number: whoever is told looks at the launches themselves.
  struct Slot {
    uint32_t tag = 0, end = 0;
  };
  std::array<std::vector<Slot>, kWidths.size()> slots_ = [] {
    std::array<std::vector<Slot>, kWidths.size()> slots;
    for (auto& row : slots) row.resize(kSlots);
    return slots;
  }();
};

// How often a stretch between two starts has been seen; the oldest makes room for a new one.
class Segments {
 public:
  uint32_t Count(uint64_t hash) {
    for (Seen& seen : row_) {
      if (seen.count > 0 && seen.hash == hash) return ++seen.count;
    }
    row_[next_++ % row_.size()] = {hash, 1};
    return 1;
  }
  void Forget(uint64_t hash) {
    for (Seen& seen : row_) {
      if (seen.hash == hash) seen.count = 0;
    }
  }

 private:
  struct Seen {
    uint64_t hash = 0;
    uint32_t count = 0;
  };
  std::array<Seen, 256> row_{};
  size_t next_ = 0;
};

}  // namespace

struct PeriodDetector::Impl {
  explicit Impl(const Options& given)
      : options(given),
        history(uint64_t{given.max_length} * std::max(2u, given.equal_periods) + 1),
        book(kPhases, uint64_t{given.max_length} * 4) {
    options.equal_periods = std::max(2u, options.equal_periods);
    candidates.reserve(kCandidates);
  }

  PeriodState Feed(uint64_t signature) {
    history.Push(signature);
    if (active != PhaseBook::kNone) Follow(signature);
    if (active == PhaseBook::kNone) Search(signature);
    return Describe();
  }

 private:
  // The launch just fed has index Now().
  uint64_t Now() const { return history.count() - 1; }

  void Follow(uint64_t signature) {
    PhaseBook::Phase& phase = book.Get(active);
    const uint32_t next = position + 1 == phase.length() ? 0 : position + 1;
    if (phase.signatures[next] == signature) {
      position = next;
      if (next == 0) EndLap();
      if (!candidates.empty()) Outgrow();
      return;
    }
    if (whole && Branch(next, signature)) return;
    if (whole && next == 0) Boundary(Now());  // the lap is complete, what follows is something else
    broken = active, broken_at = next, resumed = 0;
    active = PhaseBook::kNone;
  }

  // While a phase is followed, a longer repetition that contains it may still turn out.
  void Outgrow() {
    Compare();
    if (LockNew()) return;
    std::erase_if(candidates, [&](const Candidate& c) { return Lockable(c) && !Explains(c); });
  }

  void EndLap() {
    if (whole) ++laps;
    whole = true;
    book.Get(active).followed += book.Get(active).length();
    Boundary(Now());
  }

  // Goes over to another phase that began like this one.
  bool Branch(uint32_t next, uint64_t signature) {
    if (next > 0 && Split(next, signature)) return true;
    uint32_t to = PhaseBook::kNone, at = next;
    if (next == 0) {
      at = book.Get(active).length();
      to = book.FindBranch(book.Get(active).prefix[at], at, signature, active);
      if (to == PhaseBook::kNone) at = 0;
    }
    if (to == PhaseBook::kNone) {
      to = book.FindBranch(book.Get(active).prefix[at], at, signature, active);
    }
    if (to == PhaseBook::kNone) return false;
    Enter(to, at, true);
    if (at == 0) Boundary(Now());
    return true;
  }

  // This lap was a whole one of a shorter phase and the beginning of another: then the longer phase
  // was only a chance sequence of them, and is forgotten.
  bool Split(uint32_t next, uint64_t signature) {
    for (uint32_t first = 0; first < book.phases().size(); ++first) {
      const PhaseBook::Phase& head = book.Get(first);
      const uint32_t length = head.length();
      if (length == 0 || length > next || first == active) continue;
      if (head.prefix[length] != book.Get(active).prefix[length]) continue;
      const uint64_t rest = next - length;
      const uint32_t second = book.FindBranch(history.Hash(Now() - rest, Now()),
                                              static_cast<uint32_t>(rest), signature, active);
      if (second == PhaseBook::kNone) continue;
      book.Forget(active);
      Enter(second, static_cast<uint32_t>(rest), true);
      laps = second == first && rest == 0 ? 1 : 0;
      Boundary(Now() - rest);
      return true;
    }
    return false;
  }

  void Enter(uint32_t phase, uint32_t at, bool from_start) {
    active = phase;
    position = at;
    whole = from_start;
    laps = 0;
    broken = PhaseBook::kNone;
    ++book.Get(phase).followed;
  }

  // A lap starts at launch `start`. What lies between two such starts and is no known phase may be
  // one that never runs twice in a row: it becomes a phase when it has been seen often enough.
  void Boundary(uint64_t start) {
    const uint64_t from = boundary;
    boundary = start;
    if (from == kNever || start <= from || start - from > options.max_length) return;
    if (from < history.oldest()) return;
    const uint64_t hash = history.Hash(from, start), length = start - from;
    if (book.FindExact(hash, length) != PhaseBook::kNone) return;
    if (segments.Count(hash) < options.equal_periods) return;
    segments.Forget(hash);
    book.Add(history, from, start, active);
  }

  void Search(uint64_t signature) {
    unpredicted_at.Push(Now());
    if (Resume(signature)) return;
    Track();
    if (LockNew()) return;
    const PhaseBook::Place place = book.FindLast(history);
    if (place.phase == PhaseBook::kNone) return;
    const bool from_start = place.position + 1 == PhaseBook::kGram;
    Enter(place.phase, place.position, from_start);
    if (from_start) Boundary(Now() + 1 - PhaseBook::kGram);
  }

  // After launches that do not belong to the phase it often goes on where it was left.
  bool Resume(uint64_t signature) {
    if (broken == PhaseBook::kNone) return false;
    const PhaseBook::Phase& phase = book.Get(broken);
    if (phase.signatures[(broken_at + resumed) % phase.length()] == signature) {
      ++resumed;
    } else {
      resumed = phase.signatures[broken_at] == signature ? 1 : 0;
    }
    if (resumed < std::min(kResume, phase.length())) return false;
    const uint32_t at = (broken_at + resumed - 1) % phase.length();
    const bool from_start = broken_at == 0;
    const uint64_t start = Now() + 1 - resumed;
    Enter(broken, at, from_start);
    if (from_start) Boundary(start);
    return true;
  }

  struct Candidate {
    uint64_t distance, run;
  };

  void Compare() {
    std::erase_if(candidates, [&](Candidate& c) {
      if (c.distance > Now() - history.oldest()) return true;
      if (history.At(Now()) != history.At(Now() - c.distance)) return true;
      ++c.run;
      return false;
    });
  }

  void Track() {
    Compare();
    repetitions.Push(history, [&](uint64_t distance) {
      if (distance == 0 || distance > options.max_length) return;
      for (const Candidate& c : candidates) {
        if (c.distance == distance) return;
      }
      const uint64_t run = history.RunAt(distance);
      if (run == 0) return;
      if (candidates.size() < kCandidates) return candidates.push_back({distance, run});
      const auto weakest =
          std::min_element(candidates.begin(), candidates.end(),
                           [](const auto& a, const auto& b) { return a.run < b.run; });
      if (weakest->run < run) *weakest = {distance, run};
    });
  }

  // The shortest distance that has repeated often enough, unless a longer one explains launches
  // that the shorter does not: then the longer, which contains it.
  bool LockNew() {
    const Candidate* best = nullptr;
    for (const Candidate& c : candidates) {
      if (!Lockable(c) || !Explains(c)) continue;
      if (best == nullptr) {
        best = &c;
        continue;
      }
      const Candidate& shorter = c.distance < best->distance ? c : *best;
      const Candidate& longer = c.distance < best->distance ? *best : c;
      best = shorter.run + shorter.distance < longer.run + longer.distance ? &longer : &shorter;
    }
    if (best == nullptr) return false;
    const uint64_t length = best->distance, run = best->run;
    // Periods are counted from where the repetition began.
    const uint32_t at = static_cast<uint32_t>((run + length - 1) % length);
    const uint64_t end = Now() - at + (at + 1 == length ? length : 0);
    const uint64_t seen = (run + length) / length;
    std::erase_if(candidates, [&](const Candidate& c) {  // mere multiples
      return c.distance % length == 0 && c.run + c.distance <= run + length;
    });
    const uint32_t phase = book.Add(history, end - length, end, PhaseBook::kNone);
    Enter(phase, at, true);
    laps = at + 1 == length ? seen - 1 : seen;
    boundary = end - (at + 1 == length ? length : 0);
    return true;
  }

  bool Lockable(const Candidate& c) const {
    return c.run >= c.distance * (options.equal_periods - 1);
  }

  // While phases are known, a new period must predict what they did not.
  bool Explains(const Candidate& c) const {
    if (book.empty()) return true;
    const uint64_t from = Now() + 1 > c.distance ? Now() + 1 - c.distance : 0;
    return unpredicted_at.Since(from) * kUnpredictedShare >= c.distance;
  }

  PeriodState Describe() {
    PeriodState state;
    if (active == PhaseBook::kNone) return state;
    const PhaseBook::Phase& phase = book.Get(active);
    state.locked = true;
    state.length = phase.length();
    state.position = position;
    state.period = laps;
    state.whole = whole;
    state.phase = phase.id;
    return state;
  }

  // Indices of launches that nothing predicted, the last so many of them.
  class Unpredicted {
   public:
    void Push(uint64_t index) { ring_[count_++ % kSize] = index; }
    // How many have at least this index; the ring's size where there are more.
    uint64_t Since(uint64_t index) const {
      uint64_t low = count_ > kSize ? count_ - kSize : 0;
      const uint64_t end = count_;
      uint64_t high = end;
      while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        ring_[middle % kSize] < index ? low = middle + 1 : high = middle;
      }
      return end - low;
    }

   private:
    static constexpr uint64_t kSize = 1u << 12;
    std::vector<uint64_t> ring_ = std::vector<uint64_t>(kSize);
    uint64_t count_ = 0;
  };

  static constexpr uint64_t kNever = ~uint64_t{0};
  Options options;
  LaunchHistory history;
  PhaseBook book;
  Repetitions repetitions;
  std::vector<Candidate> candidates;
  Segments segments;
  Unpredicted unpredicted_at;
  uint64_t boundary = kNever, laps = 0;
  uint32_t active = PhaseBook::kNone, position = 0;
  bool whole = false;  // this lap has been followed from its start
  uint32_t broken = PhaseBook::kNone, broken_at = 0, resumed = 0;
};

PeriodDetector::PeriodDetector() : PeriodDetector(Options()) {}
PeriodDetector::PeriodDetector(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
PeriodDetector::~PeriodDetector() = default;
PeriodState PeriodDetector::Feed(uint64_t signature) { return impl_->Feed(signature); }

}  // namespace atp::policy
