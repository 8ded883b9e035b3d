// SPDX-License-Identifier: Apache-2.0
#include "sim/card/wire.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace atp::sim {
namespace {

bool SendAll(int socket, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t sent = send(socket, bytes, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes += sent;
    count -= static_cast<size_t>(sent);
  }
  return true;
}

bool ReceiveAll(int socket, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = recv(socket, bytes, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    count -= static_cast<size_t>(got);
  }
  return true;
}

}  // namespace

void PutWork(Writer* out, const KernelWork& work) {
  out->PutText(work.name).Put(work.resident_time).Put(work.threads).Put(work.sector_bytes);
  out->Put<uint64_t>(work.waves.size());
  for (const WaveTouches& wave : work.waves) out->PutAll(wave.pages).PutAll(wave.block_ends);
}

KernelWork GetWork(Reader* in) {
  KernelWork work;
  work.name = in->GetText();
  work.resident_time = in->Get<Time>();
  work.threads = in->Get<uint64_t>();
  work.sector_bytes = in->Get<uint64_t>();
  for (uint64_t left = in->Get<uint64_t>(); left > 0; --left) {
    WaveTouches& wave = work.waves.emplace_back();
    wave.pages = in->GetAll<PageTouch>();
    wave.block_ends = in->GetAll<uint32_t>();
  }
  return work;
}

bool SendFrame(int socket, const std::string& bytes) {
  const uint64_t size = bytes.size();
  std::string frame(reinterpret_cast<const char*>(&size), sizeof size);
  frame += bytes;
  return SendAll(socket, frame.data(), frame.size());
}

bool ReceiveFrame(int socket, std::string* bytes) {
  uint64_t size = 0;
  constexpr uint64_t kMost = uint64_t{1} << 34;
  if (!ReceiveAll(socket, reinterpret_cast<char*>(&size), sizeof size) || size > kMost) {
    return false;
  }
  bytes->resize(size);
  return ReceiveAll(socket, bytes->data(), size);
}

}  // namespace atp::sim
