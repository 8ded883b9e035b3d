// SPDX-License-Identifier: Apache-2.0
#include "protocol/message.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>

#include "daemon_generated.h"

namespace atp::protocol {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

bool WriteAll(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

// Room for the descriptors of one packet.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int) * kMostBodies)];
};

std::vector<Fd> TakeDescriptors(msghdr* message) {
  std::vector<Fd> taken;
  for (cmsghdr* c = CMSG_FIRSTHDR(message); c != nullptr; c = CMSG_NXTHDR(message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) close(fd_);
  fd_ = other.fd_;
  other.fd_ = -1;
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Fd MakeBody(std::span<const uint8_t> bytes) {
  Fd body(memfd_create("atp", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!body || !WriteAll(body.get(), bytes) || fcntl(body.get(), F_ADD_SEALS, kSeals) != 0)
    return {};
  return body;
}

bool ReadBody(const Fd& body, uint64_t most, std::vector<uint8_t>* bytes) {
  const int seals = fcntl(body.get(), F_GET_SEALS);
  if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_WRITE)) != (F_SEAL_SHRINK | F_SEAL_WRITE)) {
    return false;
  }
  struct stat status {};
  if (fstat(body.get(), &status) != 0 || status.st_size < 0) return false;
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > most) return false;
  bytes->resize(size);
  for (uint64_t have = 0; have < size;) {
    const ssize_t got =
        pread(body.get(), bytes->data() + have, size - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += static_cast<uint64_t>(got);
  }
  return true;
}

Fd Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return {};
  memcpy(address.sun_path, path.data(), path.size());
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  // Of a Unix socket: done at once, or refused because the listener's queue is full.
  const auto* to = reinterpret_cast<const sockaddr*>(&address);
  if (connect(fd.get(), to, sizeof address) != 0) return {};
  return fd;
}

bool Send(const Fd& socket, const Message& message, std::span<const Fd> bodies) {
  std::vector<uint8_t> bytes = WriteMessage(message);
  if (bytes.size() > kMostPacketBytes || bodies.size() > kMostBodies) return false;
  iovec part{bytes.data(), bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!bodies.empty()) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * bodies.size());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * bodies.size());
    for (size_t i = 0; i < bodies.size(); ++i) {
      const int fd = bodies[i].get();
      if (fd < 0) return false;
      memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

std::optional<Received> Receive(const Fd& socket, bool* closed) {
  *closed = false;
  alignas(8) std::array<uint8_t, kMostPacketBytes> bytes;  // FlatBuffers reads in place
  iovec part{bytes.data(), bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  ssize_t got;
  do {
    got = recvmsg(socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    *closed = errno != EAGAIN && errno != EWOULDBLOCK;
    return std::nullopt;
  }
  Received received;
  received.bodies = TakeDescriptors(&header);
  const bool whole = got > 0 && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  const auto message = whole ? ReadMessage({bytes.data(), static_cast<size_t>(got)}) : std::nullopt;
  *closed = !message;
  if (!message) return std::nullopt;
  received.message = *message;
  return received;
}

bool AwaitReadable(const Fd& socket, int milliseconds) {
  pollfd wanted{socket.get(), POLLIN, 0};
  return poll(&wanted, 1, milliseconds) == 1;
}

std::optional<uint32_t> UserOf(const Fd& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer.uid;
}

int ProcessOf(const Fd& socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

std::vector<std::string> SocketPaths() {
  if (const char* given = getenv("ATP_SOCKET"); given != nullptr) {
    if (given[0] == '/') return {given};
    for (const char* off : {"0", "off", "false", "no"}) {
      if (strcasecmp(given, off) == 0) return {};
    }
  }
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  const std::string own =
      runtime != nullptr && runtime[0] == '/' ? runtime : "/run/user/" + std::to_string(geteuid());
  return {own + "/atp/atpd.sock", kMachineSocket};
}

std::optional<Message> ReadMessage(std::span<const uint8_t> bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (!wire::VerifyMessageBuffer(verifier)) return std::nullopt;
  const wire::Message* from = wire::GetMessage(bytes.data());
  if (from->version() == 0 || from->version() > kMessageVersion + 1) return std::nullopt;
  Message message;
  message.version = from->version();
  message.kind = static_cast<MessageKind>(from->kind());
  message.job = from->job();
  if (from->text() != nullptr) message.text = from->text()->str();
  message.number = from->number();
  return message;
}

std::vector<uint8_t> WriteMessage(const Message& message) {
  flatbuffers::FlatBufferBuilder to;
  const auto text = to.CreateString(message.text);
  wire::FinishMessageBuffer(
      to, wire::CreateMessage(to, message.version, static_cast<uint32_t>(message.kind), message.job,
                              text, message.number));
  return {to.GetBufferPointer(), to.GetBufferPointer() + to.GetSize()};
}

}  // namespace atp::protocol
