// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "daemon/log.h"

namespace atp::daemon {
namespace {

using protocol::Fd;

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error(what + ": " + strerror(errno));
}

// For the owner alone from its first moment on: the mask, not a later chmod.
Fd Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    Fail(path);
  }
  memcpy(address.sun_path, path.data(), path.size());
  Fd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) Fail("socket");
  const mode_t mask = umask(0177);
  const int bound =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  umask(mask);
  if (bound != 0 || listen(listener.get(), SOMAXCONN) != 0) Fail(path);
  return listener;
}

void ShareWith(const std::string& path, const std::string& group) {
  const ::group* found = getgrnam(group.c_str());
  if (found == nullptr) throw std::runtime_error("there is no group " + group);
  if (chown(path.c_str(), static_cast<uid_t>(-1), found->gr_gid) != 0 ||
      chmod(path.c_str(), 0660) != 0) {
    Fail(path);
  }
}

void Watch(const Fd& poll, int fd, void* what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = what;
  if (epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event) != 0) Fail("epoll_ctl");
}

}  // namespace

Server::Server(const std::string& path, const std::string& group, Service* service)
    : path_(path), service_(*service) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!std::filesystem::exists(folder)) {
    std::filesystem::create_directories(folder);
    // Others must reach a socket that is meant for a group.
    if (chmod(folder.c_str(), group.empty() ? 0700 : 0755) != 0) Fail(folder);
  }
  Lock();
  unlink(path.c_str());  // left behind by one that was killed: the lock says that nobody listens
  listener_ = Listen(path);
  if (!group.empty()) ShareWith(path, group);
  poll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!poll_) Fail("epoll_create1");
  Watch(poll_, listener_.get(), &listener_);
}

Server::~Server() { unlink(path_.c_str()); }

// Released by the kernel, however this process ends.
void Server::Lock() {
  const std::string name = path_ + ".lock";
  lock_ = Fd(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) Fail(name);
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
  throw std::runtime_error("another atpd listens at " + path_);
}

void Server::Also(int descriptor, std::function<void()> serve) {
  also_.push_back(std::move(serve));
  if (descriptor >= 0) Watch(poll_, descriptor, &also_);
}

void Server::Run(int stop) {
  Watch(poll_, stop, &poll_);
  while (true) {
    epoll_event events[64];
    const int wait = connections_.empty() && also_.empty() ? -1 : 1000;
    const int count = epoll_wait(poll_.get(), events, std::size(events), wait);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == &poll_) {
        epoll_ctl(poll_.get(), EPOLL_CTL_DEL, stop, nullptr);
        return;
      }
      if (events[i].data.ptr != &listener_) {
        // A connection may have been dropped by an event before this one.
        const auto found =
            std::find_if(connections_.begin(), connections_.end(),
                         [&](const Connection& c) { return &c == events[i].data.ptr; });
        if (found != connections_.end()) Serve(found);
      }
    }
    // Behind the others, so that a new connection never takes the address of an old one in between.
    for (int i = 0; i < count; ++i) {
      if (events[i].data.ptr == &listener_) Accept();
    }
    DropSilent();
    for (const auto& serve : also_) serve();
  }
}

void Server::Accept() {
  // A few at a time: others are to be served meanwhile.
  for (int i = 0; i < 64; ++i) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE) return;
      if (connections_.empty()) return;
      connections_.pop_front();
      ++counters_.dropped;
      continue;
    }
    ++counters_.accepted;
    const auto user = protocol::UserOf(socket);
    if (!user) continue;
    MakeRoom(*user);
    connections_.push_back({std::move(socket), *user, Clock::now()});
    const Place last = std::prev(connections_.end());
    Watch(poll_, last->socket.get(), &*last);
    // Mostly the message is there already: in the order of connections, as clients may expect.
    Serve(last);
  }
}

void Server::MakeRoom(uint32_t user) {
  const auto is_of = [user](const Connection& c) { return c.user == user; };
  const auto of_user = std::count_if(connections_.begin(), connections_.end(), is_of);
  Place oldest = connections_.end();
  if (static_cast<size_t>(of_user) >= kMostOfOneUser) {
    oldest = std::find_if(connections_.begin(), connections_.end(), is_of);
  } else if (connections_.size() >= kMostConnections) {
    oldest = connections_.begin();
  }
  if (oldest == connections_.end()) return;
  connections_.erase(oldest);
  ++counters_.dropped;
}

void Server::Serve(Place connection) {
  bool closed = false;
  const auto received = protocol::Receive(connection->socket, &closed);
  if (!received) {
    if (closed) connections_.erase(connection);
    return;
  }
  const auto reply = service_.Answer(connection->user, received->message, received->bodies,
                                     protocol::ProcessOf(connection->socket));
  if (reply && !SendReply(connection->socket, *reply)) ++counters_.unanswered;
  ++counters_.served;
  connections_.erase(connection);
}

bool Server::SendReply(const Fd& socket, const Reply& reply) {
  std::vector<Fd> bodies;
  for (const std::vector<uint8_t>& bytes : reply.bodies) {
    bodies.push_back(protocol::MakeBody(bytes));
  }
  return protocol::Send(socket, reply.message, bodies);
}

void Server::DropSilent() {
  const Clock::time_point now = Clock::now();
  while (!connections_.empty() && connections_.front().since + kSilence < now) {
    connections_.pop_front();
    ++counters_.dropped;
  }
}

}  // namespace atp::daemon
