// SPDX-License-Identifier: Apache-2.0
#include "sim/card/remote_machine.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "sim/card/wire.h"

namespace atp::sim {
namespace {

// What costs processor time alone is kept here and goes with the lane's next question; what nobody
// waits for is sent with the next question too. Until then the lane's clock does not show that the
// queue of a stream was full.
class RemoteMachine : public Machine {
 public:
  RemoteMachine(int socket, Time start, std::unique_ptr<Machine> local)
      : socket_(socket), start_(start), local_(std::move(local)), meter_(local_->NewLane(0)) {}
  ~RemoteMachine() override { close(socket_); }

  const DeviceShape& Shape(int device) const override { return local_->Shape(device); }
  Time KernelTime(int device, const LaunchConfig& config, const ExecResult& result) const override {
    return local_->KernelTime(device, config, result);
  }

  Lane NewLane(Time start) override {
    start = std::max(start, start_);
    const std::string answer = AskText(kNoLane, start, Writer().Put(Op::kNewLane).Put(start));
    Reader in(answer);
    const Lane lane = in.Get<Lane>();
    if (clocks_.size() <= lane) {
      clocks_.resize(lane + 1);
      told_.resize(lane + 1);
    }
    clocks_[lane] = told_[lane] = in.Get<Time>();
    last_ = lane;
    return lane;
  }
  Time Now(Lane lane) const override { return clocks_[lane]; }
  void Spend(Lane lane, Time cost) override { clocks_[lane] += cost; }
  void SpendCall(Lane lane, const char* cost_name) override {
    const Time before = local_->Now(meter_);
    local_->SpendCall(meter_, cost_name);
    clocks_[lane] += local_->Now(meter_) - before;
  }

  MachineStatus AllocDevice(Lane lane, int device, uint64_t bytes) override {
    return Call<MachineStatus>(lane, Op::kAllocDevice, device, bytes);
  }
  void FreeDevice(Lane lane, int device, uint64_t bytes) override {
    Call<char>(lane, Op::kFreeDevice, device, bytes);
  }
  MemoryInfo Info(int device) const override { return Look<MemoryInfo>(Op::kInfo, device); }

  void AddManaged(Lane lane, uint64_t address, uint64_t bytes) override {
    Call<char>(lane, Op::kAddManaged, address, bytes);
  }
  void RemoveManaged(Lane lane, uint64_t address) override {
    Call<char>(lane, Op::kRemoveManaged, address);
  }
  MachineStatus Prefetch(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                         int location) override {
    return Call<MachineStatus>(lane, Op::kPrefetch, stream, address, bytes, location);
  }
  MachineStatus Advise(Lane lane, uint64_t address, uint64_t bytes, Advice advice,
                       int location) override {
    return Call<MachineStatus>(lane, Op::kAdvise, address, bytes, advice, location);
  }
  MachineStatus Discard(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                        bool then_prefetch, int location) override {
    return Call<MachineStatus>(lane, Op::kDiscard, stream, address, bytes, then_prefetch, location);
  }
  MachineStatus HostAccess(Lane lane, uint64_t address, uint64_t bytes, bool write) override {
    return Call<MachineStatus>(lane, Op::kHostAccess, address, bytes, write);
  }
  bool ResidentOnHost(uint64_t address) const override { return Residency(address) == kHost; }
  int Residency(uint64_t address) const override { return Look<int>(Op::kResidency, address); }

  StreamId NewStream(int device, bool blocks_with_legacy) override {
    return Look<StreamId>(Op::kNewStream, device, blocks_with_legacy);
  }
  StreamId LegacyStream(int device) const override {
    return Look<StreamId>(Op::kLegacyStream, device);
  }
  void DropStream(Lane lane, StreamId stream) override {
    Call<char>(lane, Op::kDropStream, stream);
  }
  EventId NewEvent() override { return Look<EventId>(Op::kNewEvent); }
  void DropEvent(EventId event) override { Look<char>(Op::kDropEvent, event); }

  void SubmitKernel(Lane lane, StreamId stream, KernelWork work) override {
    Writer out;
    out.Put(Op::kSubmitKernel).Put(stream);
    PutWork(&out, work);
    Later(lane, out);
  }
  void SubmitCopy(Lane lane, StreamId stream, CopyWork work) override {
    if (work.pageable_host) {
      Call<char>(lane, Op::kSubmitCopy, stream, work);
    } else {
      Later(lane, Writer().Put(Op::kSubmitCopy).Put(stream).Put(work));
    }
  }
  void SubmitDelay(Lane lane, StreamId stream, Time duration) override {
    Later(lane, Writer().Put(Op::kSubmitDelay).Put(stream).Put(duration));
  }
  void Record(Lane lane, StreamId stream, EventId event) override {
    Later(lane, Writer().Put(Op::kRecord).Put(stream).Put(event));
  }
  void Wait(Lane lane, StreamId stream, EventId event) override {
    Later(lane, Writer().Put(Op::kWait).Put(stream).Put(event));
  }

  bool Done(Lane lane, StreamId stream) override { return Call<bool>(lane, Op::kDone, stream); }
  bool EventDone(Lane lane, EventId event) override {
    return Call<bool>(lane, Op::kEventDone, event);
  }
  void SyncStream(Lane lane, StreamId stream) override {
    Call<char>(lane, Op::kSyncStream, stream);
  }
  void SyncEvent(Lane lane, EventId event) override { Call<char>(lane, Op::kSyncEvent, event); }
  void SyncDevice(Lane lane, int device) override { Call<char>(lane, Op::kSyncDevice, device); }
  Time EventTime(EventId event) const override { return Look<Time>(Op::kEventTime, event); }
  int WaitAny(Lane lane, std::span<const EventId> events, Time deadline) override {
    Writer out;
    out.Put(Op::kWaitAny).Put(deadline).PutAll(std::vector<EventId>(events.begin(), events.end()));
    return Ask<int>(lane, out);
  }

  MachineStatus Health(int device) const override {
    return Look<MachineStatus>(Op::kHealth, device);
  }
  std::vector<ProcessUse> Processes(int device) const override {
    const std::string answer = AskText(kNoLane, Clock(), Writer().Put(Op::kProcesses).Put(device));
    return Reader(answer).GetAll<ProcessUse>();
  }
  Time KernelBusy(int device) const override { return Look<Time>(Op::kKernelBusy, device); }
  uint64_t HostFree() const override { return Look<uint64_t>(Op::kHostFree); }
  std::string StatsJson() override {
    return AskText(kNoLane, Clock(), Writer().Put(Op::kStatsJson));
  }
  void FlushTimeline() override {}  // the card's holder writes it
  void SetPeerAccess(int device, int peer, bool enabled) override {
    Look<char>(Op::kSetPeerAccess, device, peer, enabled);
  }
  uint64_t DiscardViolations() const override { return Look<uint64_t>(Op::kDiscardViolations); }

 private:
  // Of the lane that has called last: calls that name none are made by it.
  Time Clock() const { return clocks_.empty() ? start_ : clocks_[last_]; }

  template <typename Result, typename... Arguments>
  Result Call(Lane lane, Op op, const Arguments&... arguments) {
    Writer out;
    out.Put(op);
    (out.Put(arguments), ...);
    return Ask<Result>(lane, out);
  }
  template <typename Result, typename... Arguments>
  Result Look(Op op, const Arguments&... arguments) const {
    Writer out;
    out.Put(op);
    (out.Put(arguments), ...);
    const std::string answer = AskText(kNoLane, Clock(), out);
    return Reader(answer).Get<Result>();
  }
  template <typename Result>
  Result Ask(Lane lane, const Writer& question) {
    last_ = lane;
    const std::string answer = AskText(lane, clocks_[lane], question);
    return Reader(answer).Get<Result>();
  }
  void Later(Lane lane, const Writer& question) {
    last_ = lane;
    Append(lane, clocks_[lane], question);
    constexpr int kMost = 256;
    if (++waiting_ == kMost) Look<MachineStatus>(Op::kHealth, 0);
  }
  // With what the lane has spent since it was last heard of.
  void Append(Lane lane, Time at, const Writer& question) const {
    const Time spent = lane == kNoLane ? 0 : at - std::exchange(told_[lane], at);
    questions_.PutText(Writer().Put(lane).Put(at).Put(spent).bytes() + question.bytes());
  }
  std::string AskText(Lane lane, Time at, const Writer& question) const {
    Append(lane, at, question);
    std::string answer;
    const bool sent = SendFrame(socket_, questions_.bytes());
    questions_ = {};
    waiting_ = 0;
    if (!sent || !ReceiveFrame(socket_, &answer)) {
      std::fprintf(stderr, "libcuda (simulated): the process that holds the shared card is gone\n");
      std::_Exit(1);
    }
    Reader in(answer);
    for (const LaneClock& clock : in.GetAll<LaneClock>()) {
      clocks_[clock.lane] = told_[clock.lane] = clock.now;
    }
    return in.GetText();
  }

  const int socket_;
  const Time start_;
  const std::unique_ptr<Machine> local_;  // for what asks nobody: shapes, durations, costs
  const Lane meter_;
  mutable std::vector<Time> clocks_, told_;  // by lane
  mutable Writer questions_;                 // frames of those not sent yet
  mutable int waiting_ = 0;
  Lane last_ = 0;
};

int Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

std::unique_ptr<Machine> JoinCard(const CardPlace& place, const MachineConfig& config,
                                  std::string* error) {
  MachineConfig own = config;
  own.timeline.clear();
  auto local = Machine::Create(own, error);
  if (local == nullptr) return nullptr;
  const int socket = Connect(place.socket);
  Writer out;
  out.Put(Op::kJoin).Put(place.member).PutText(config.profile).Put(config.device_bytes);
  out.Put(config.host_bytes).Put(config.devices).PutText(config.overrides);
  std::string answer;
  if (socket < 0 || !SendFrame(socket, out.bytes()) || !ReceiveFrame(socket, &answer)) {
    *error = "ATP_SIM_CARD=" + place.socket + ": no simcard listens there";
    if (socket >= 0) close(socket);
    return nullptr;
  }
  *error = Reader(answer).GetText();
  if (!error->empty()) {
    *error = "ATP_SIM_CARD=" + place.socket + ": " + *error;
    close(socket);
    return nullptr;
  }
  return std::make_unique<RemoteMachine>(socket, place.start, std::move(local));
}

}  // namespace atp::sim
