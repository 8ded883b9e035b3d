// SPDX-License-Identifier: Apache-2.0
#include "sim/card/card_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace atp::sim {
namespace {

constexpr int kPageShift = kMemberShift - 12;
static_assert(kPageBytes == uint64_t{1} << 12);

uint64_t Own(uint64_t address) { return address + FirstAddressOf(CurrentMember()); }
uint64_t OwnOrNone(uint64_t address) { return address == 0 ? 0 : Own(address); }

pid_t ProcessAt(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  const bool known = getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  return known ? credentials.pid : 0;
}

template <typename T>
std::string One(const T& value) {
  return Writer().Put(value).bytes();
}

}  // namespace

// The first program says which card it is; the others must mean the same one.
std::string CardServer::MakeMachine(const MachineConfig& config) {
  std::lock_guard lock(mutex_);
  std::string error;
  if (machine_ == nullptr) {
    config_ = config;
    MachineConfig made = config;
    made.timeline = timeline_;
    std::unique_ptr<Machine> machine = Machine::Create(made, &error);
    if (machine == nullptr) return error;
    machine_.reset(static_cast<TimingMachine*>(machine.release()));
    machine_->TakeTurns(&table_);
    for (Member member = 1; member < kMostMembers; ++member) machine_->AddMember(member);
    return "";
  }
  const bool same = config.profile == config_.profile && config.devices == config_.devices &&
                    config.device_bytes == config_.device_bytes &&
                    config.host_bytes == config_.host_bytes &&
                    config.overrides == config_.overrides;
  return same ? "" : "ATP_SIM_* describe another card than those of the first program";
}

bool CardServer::Join(int socket, pid_t process) {
  std::string question;
  if (!ReceiveFrame(socket, &question)) return false;
  Reader in(question);
  if (in.Get<Op>() != Op::kJoin) return false;
  const int wanted = in.Get<int>();
  MachineConfig config;
  config.profile = in.GetText();
  config.device_bytes = in.Get<uint64_t>();
  config.host_bytes = in.Get<uint64_t>();
  config.devices = in.Get<int>();
  config.overrides = in.GetText();
  std::string error = MakeMachine(config);
  if (error.empty()) {
    const Member member =
        table_.Join(wanted < 0 ? kMostMembers : static_cast<Member>(wanted), process);
    if (member == kMostMembers) error = "there is a program of that number, or too many of them";
    SetCurrentMember(member);
  }
  if (!error.empty()) table_.Refused();
  const bool told = SendFrame(socket, Writer().PutText(error).bytes());
  if (error.empty() && !told) table_.Leave();
  return error.empty() && told;
}

void CardServer::Serve(int socket) {
  if (Join(socket, ProcessAt(socket))) {
    Time last = 0;
    std::string questions;
    while (ReceiveFrame(socket, &questions)) {
      if (!SendFrame(socket, AnswerAll(questions, &last))) break;
    }
    table_.Begin(last);
    machine_->DropMember(CurrentMember());
    machine_->FlushTimeline();
    table_.Leave();
  }
  close(socket);
}

// Each in its turn. `last`: when the last one was made.
std::string CardServer::AnswerAll(const std::string& questions, Time* last) {
  Reader list(questions);
  std::vector<LaneClock> clocks;
  std::string answer;
  bool slept = false;
  for (bool first = true; !list.AtEnd(); first = false) {
    const std::string question = list.GetText();
    Reader in(question);
    const Lane lane = in.Get<Lane>();
    *last = in.Get<Time>();
    const Time spent = in.Get<Time>();
    const Op op = in.Get<Op>();
    if (first) slept = table_.Begin(*last);
    while (table_.Await(*last)) {
    }
    if (lane != kNoLane) {
      machine_->Spend(lane, spent);
      // One that slept comes back at what the time is then.
      const Time now = machine_->now();
      if (slept && machine_->Now(lane) < now) machine_->Spend(lane, now - machine_->Now(lane));
      clocks.push_back({lane, 0});
    }
    answer = Answer(op, lane, &in);
  }
  for (LaneClock& clock : clocks) clock.now = machine_->Now(clock.lane);
  table_.End();
  return Writer().PutAll(clocks).PutText(answer).bytes();
}

std::string CardServer::Answer(Op op, Lane lane, Reader* in) {
  TimingMachine& m = *machine_;
  const auto done = One<char>(0);
  switch (op) {
    case Op::kNewLane: {
      const Lane made = m.NewLane(in->Get<Time>());
      return One(made) + One(m.Now(made));
    }
    case Op::kAllocDevice: {
      const int device = in->Get<int>();
      return One(m.AllocDevice(lane, device, in->Get<uint64_t>()));
    }
    case Op::kFreeDevice: {
      const int device = in->Get<int>();
      return m.FreeDevice(lane, device, in->Get<uint64_t>()), done;
    }
    case Op::kInfo:
      return One(m.Info(in->Get<int>()));
    case Op::kAddManaged: {
      const uint64_t address = Own(in->Get<uint64_t>());
      return m.AddManaged(lane, address, in->Get<uint64_t>()), done;
    }
    case Op::kRemoveManaged:
      return m.RemoveManaged(lane, Own(in->Get<uint64_t>())), done;
    case Op::kPrefetch: {
      const StreamId stream = in->Get<StreamId>();
      const uint64_t address = Own(in->Get<uint64_t>()), bytes = in->Get<uint64_t>();
      return One(m.Prefetch(lane, stream, address, bytes, in->Get<int>()));
    }
    case Op::kAdvise: {
      const uint64_t address = Own(in->Get<uint64_t>()), bytes = in->Get<uint64_t>();
      const Advice advice = in->Get<Advice>();
      return One(m.Advise(lane, address, bytes, advice, in->Get<int>()));
    }
    case Op::kDiscard: {
      const StreamId stream = in->Get<StreamId>();
      const uint64_t address = Own(in->Get<uint64_t>()), bytes = in->Get<uint64_t>();
      const bool then_prefetch = in->Get<bool>();
      return One(m.Discard(lane, stream, address, bytes, then_prefetch, in->Get<int>()));
    }
    case Op::kHostAccess: {
      const uint64_t address = Own(in->Get<uint64_t>()), bytes = in->Get<uint64_t>();
      return One(m.HostAccess(lane, address, bytes, in->Get<bool>()));
    }
    case Op::kResidency:
      return One(m.Residency(Own(in->Get<uint64_t>())));
    case Op::kHealth:
      return One(m.Health(in->Get<int>()));
    case Op::kProcesses:
      return ProcessesOn(in->Get<int>());
    case Op::kKernelBusy:
      return One(m.KernelBusy(in->Get<int>()));
    case Op::kHostFree:
      return One(m.HostFree());
    case Op::kStatsJson:
      return m.StatsJson();
    case Op::kSetPeerAccess: {
      const int device = in->Get<int>(), peer = in->Get<int>();
      return m.SetPeerAccess(device, peer, in->Get<bool>()), done;
    }
    case Op::kDiscardViolations:
      return One(m.DiscardViolations());
    default:
      return AnswerOnStreams(op, lane, in);
  }
}

std::string CardServer::ProcessesOn(int device) {
  std::vector<ProcessUse> uses;
  for (const auto& [member, process] : table_.Present()) {
    const bool asks = member == CurrentMember();
    uses.push_back({asks ? 0 : process, machine_->BytesOf(member, device)});
  }
  return Writer().PutAll(uses).bytes();
}

std::string CardServer::AnswerOnStreams(Op op, Lane lane, Reader* in) {
  TimingMachine& m = *machine_;
  const auto done = One<char>(0);
  switch (op) {
    case Op::kNewStream: {
      const int device = in->Get<int>();
      return One(m.NewStream(device, in->Get<bool>()));
    }
    case Op::kLegacyStream:
      return One(m.LegacyStream(in->Get<int>()));
    case Op::kDropStream:
      return m.DropStream(lane, in->Get<StreamId>()), done;
    case Op::kNewEvent:
      return One(m.NewEvent());
    case Op::kDropEvent:
      return m.DropEvent(in->Get<EventId>()), done;
    case Op::kSubmitKernel: {
      const StreamId stream = in->Get<StreamId>();
      KernelWork work = GetWork(in);
      for (WaveTouches& wave : work.waves) {
        for (PageTouch& touch : wave.pages) {
          touch.page += static_cast<uint64_t>(CurrentMember()) << kPageShift;
        }
      }
      return m.SubmitKernel(lane, stream, std::move(work)), done;
    }
    case Op::kSubmitCopy: {
      const StreamId stream = in->Get<StreamId>();
      CopyWork work = in->Get<CopyWork>();
      work.source = OwnOrNone(work.source);
      work.destination = OwnOrNone(work.destination);
      return m.SubmitCopy(lane, stream, work), done;
    }
    case Op::kSubmitDelay: {
      const StreamId stream = in->Get<StreamId>();
      return m.SubmitDelay(lane, stream, in->Get<Time>()), done;
    }
    case Op::kRecord: {
      const StreamId stream = in->Get<StreamId>();
      return m.Record(lane, stream, in->Get<EventId>()), done;
    }
    case Op::kWait: {
      const StreamId stream = in->Get<StreamId>();
      return m.Wait(lane, stream, in->Get<EventId>()), done;
    }
    case Op::kDone:
      return One(m.Done(lane, in->Get<StreamId>()));
    case Op::kEventDone:
      return One(m.EventDone(lane, in->Get<EventId>()));
    case Op::kSyncStream:
      return m.SyncStream(lane, in->Get<StreamId>()), done;
    case Op::kSyncEvent:
      return m.SyncEvent(lane, in->Get<EventId>()), done;
    case Op::kSyncDevice:
      return m.SyncDevice(lane, in->Get<int>()), done;
    case Op::kEventTime:
      return One(m.EventTime(in->Get<EventId>()));
    case Op::kWaitAny: {
      const Time deadline = in->Get<Time>();
      const std::vector<EventId> events = in->GetAll<EventId>();
      return One(m.WaitAny(lane, events, deadline));
    }
    default:
      return done;
  }
}

}  // namespace atp::sim
