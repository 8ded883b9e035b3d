// SPDX-License-Identifier: Apache-2.0
// One exchange with atpd: a packet each way on a Unix socket (SOCK_SEQPACKET), and beside it what
// is large, in sealed memory files. A packet is whole or not there, and a sealed file cannot change
// or shrink under its reader. A connection serves one exchange, so that nobody holds a descriptor
// that the program may close. Nothing here blocks but where a deadline is given. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace atp::protocol {

inline constexpr uint32_t kMessageVersion = 1;
inline constexpr size_t kMostPacketBytes = 16u << 10;
inline constexpr size_t kMostBodies = 4;
inline constexpr uint64_t kNoBudget = UINT64_MAX;

// Numbers are never used again for something else.
enum class MessageKind : uint32_t {
  kAsk = 1,      // body: Fingerprint -> kAnswer with a body (Learned) for each workload, best first
  kTell = 2,     // body: Learned; no reply. text: "import" -> kAnswer
  kAnswer = 3,   // the reply of atpd
  kRefused = 4,  // text says why
  kStatus = 5,   // -> kAnswer with a body: JSON (docs/daemon.md)
  kForget = 6,   // number: a workload, 0 = all of the user's -> kAnswer, number: how many
  kExport = 7,   // number: a workload -> kAnswer with its Learned
  // body: ShareReport -> kAnswer, number: the budget in bytes; 0 = wait, kNoBudget = as if no
  // daemon were there
  kShare = 8,
  // number: bytes, 0 = no limit any more; job, or 0 and text: a process number -> kAnswer, number:
  // how many jobs that were
  kBudget = 9,
};

struct Message {
  uint32_t version = kMessageVersion;
  MessageKind kind = MessageKind::kRefused;
  uint64_t job = 0;
  std::string text;
  uint64_t number = 0;
};

// A descriptor that is closed at the end.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A sealed memory file with these bytes; none: out of memory or descriptors.
Fd MakeBody(std::span<const uint8_t> bytes);
// Only of a sealed memory file: reading anything else may block. False: it is none, or longer than
// `most`.
bool ReadBody(const Fd& body, uint64_t most, std::vector<uint8_t>* bytes);

// None: nobody listens there, or a deadline of 0 would have to be waited for.
Fd Connect(const std::string& path);

// False: it does not fit the peer's queue, or the peer is gone.
bool Send(const Fd& socket, const Message& message, std::span<const Fd> bodies = {});

struct Received {
  Message message;
  std::vector<Fd> bodies;
};
// None and `closed`: the peer has hung up, or says what cannot be read. None without it: nothing
// there yet.
std::optional<Received> Receive(const Fd& socket, bool* closed);
bool AwaitReadable(const Fd& socket, int milliseconds);
std::optional<uint32_t> UserOf(const Fd& socket);  // who is at the other end, by the kernel
// The process there as this one would name it; 0: it lives where this one cannot see.
int ProcessOf(const Fd& socket);

// Where atpd may listen, in the order to try: what ATP_SOCKET names; else of the user, then of the
// machine. Empty: ATP_SOCKET switches it off.
std::vector<std::string> SocketPaths();
inline constexpr const char* kMachineSocket = "/run/atp/atpd.sock";

// Takes foreign bytes; none: not a message, or of a version that is too new.
std::optional<Message> ReadMessage(std::span<const uint8_t> bytes);
std::vector<uint8_t> WriteMessage(const Message& message);

}  // namespace atp::protocol
