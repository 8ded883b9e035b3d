// SPDX-License-Identifier: Apache-2.0
#include "shim/host_ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "shim/shimlog.h"

namespace atp::shim {
namespace {

constexpr char kMagic[8] = {'a', 't', 'p', 'l', 'e', 'd', 'g', '1'};

// Bytes of the file that are locked lie behind all that is written.
constexpr off_t kWholeLock = off_t{1} << 40;
off_t LockOf(uint32_t index) { return kWholeLock + 1 + static_cast<off_t>(index); }

struct flock Range(short type, off_t at) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = at;
  range.l_len = 1;
  return range;
}

bool TryLock(int fd, off_t at) {
  struct flock range = Range(F_WRLCK, at);
  return fcntl(fd, F_OFD_SETLK, &range) == 0;
}

}  // namespace

uint64_t HostNeed(std::span<const LedgerEntry* const> entries) {
  struct Card {
    uint64_t id = 0, managed = 0, room = 0, alone = 0;
  };
  std::vector<Card> cards;
  for (const LedgerEntry* entry : entries) {
    for (const LedgerDevice& device : entry->devices) {
      if (device.card == 0 || device.managed == 0) continue;
      auto card = std::find_if(cards.begin(), cards.end(),
                               [&](const Card& c) { return c.id == device.card; });
      if (card == cards.end()) card = cards.insert(card, Card{device.card});
      card->managed += device.managed;
      card->room = std::max(card->room, device.room);
      if (device.managed > device.room) card->alone += device.managed;
    }
  }
  uint64_t need = 0;
  for (const Card& card : cards) need += card.managed > card.room ? card.managed : card.alone;
  return need;
}

bool UsualLedger(char* path, size_t size) {
  const int length =
      snprintf(path, size, "/dev/shm/atp-ledger-1.%u", static_cast<unsigned>(geteuid()));
  return length > 0 && static_cast<size_t>(length) < size;
}

void HostLedger::With(const Body& body) {
  std::lock_guard guard(mutex_);
  if ((file_ == nullptr && !Open()) || !Lock()) {
    const LedgerEntry* living[] = {&alone_};
    if (alone_.pid == 0) Describe(&alone_);
    return body(&alone_, living, &alone_available_);
  }
  std::vector<const LedgerEntry*> living;
  for (uint32_t i = 0; i < kEntries; ++i) {
    LedgerEntry& entry = file_->entries[i];
    if (entry.pid == 0) continue;
    if (i == own_ || IsHeld(i)) {
      living.push_back(&entry);
    } else {
      entry = LedgerEntry{};  // of a process that is gone
    }
  }
  body(&file_->entries[own_], living, &file_->available);
  Unlock();
}

bool HostLedger::Open() {
  if (path_ == nullptr || refused_) return false;
  refused_ = true;
  fd_ = open(path_, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat status {};
  const bool ours =
      fd_ >= 0 && fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
  if (!ours || !Lock()) {
    ATP_LOG_INFO("no ledger of host memory (%s): this process counts for itself only", path_);
    Close();
    return false;
  }
  device_ = status.st_dev;
  inode_ = status.st_ino;
  const bool large =
      static_cast<uint64_t>(status.st_size) >= sizeof(File) ||
      ftruncate(fd_, sizeof(File)) == 0;  // new pages are zero, and taken as they are written
  void* memory =
      large ? mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0) : MAP_FAILED;
  if (memory != MAP_FAILED) {
    file_ = static_cast<File*>(memory);
    if (memcmp(file_->magic, kMagic, sizeof kMagic) != 0) {
      memset(memory, 0, sizeof(File));
      memcpy(file_->magic, kMagic, sizeof kMagic);
    }
  }
  refused_ = file_ == nullptr || !TakeEntry();
  Unlock();
  if (refused_) Close();
  return !refused_;
}

void HostLedger::Close() {
  if (file_ != nullptr) munmap(file_, sizeof(File));
  if (fd_ >= 0) close(fd_);  // and with it go the locks
  file_ = nullptr;
  fd_ = -1;
}

// Programs that become daemons close whatever is open, and the number may be another file's since.
bool HostLedger::StillOurs() const {
  struct stat status {};
  return fstat(fd_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

bool HostLedger::TakeEntry() {
  for (uint32_t i = 0; i < kEntries; ++i) {
    if (!TryLock(fd_, LockOf(i))) continue;
    own_ = i;
    file_->entries[i] = LedgerEntry{};
    Describe(&file_->entries[i]);
    return true;
  }
  return false;
}

void HostLedger::Describe(LedgerEntry* entry) const {
  entry->pid = getpid();
  const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t got = read(fd, entry->name, sizeof entry->name - 1);
  close(fd);
  if (got > 0) entry->name[strcspn(entry->name, "\n")] = '\0';
}

// Whoever has it needs microseconds. One that is stopped in the middle must not stop the others.
bool HostLedger::Lock() {
  if (file_ != nullptr && !StillOurs()) {
    munmap(file_, sizeof(File));
    file_ = nullptr;
    fd_ = -1;
    refused_ = true;
    return false;
  }
  constexpr int kTries = 1000;
  constexpr timespec kPause = {0, 1'000'000};
  for (int i = 0; i < kTries; ++i) {
    if (TryLock(fd_, kWholeLock)) return true;
    if (errno != EAGAIN && errno != EACCES) break;
    nanosleep(&kPause, nullptr);
  }
  return false;
}

void HostLedger::Unlock() {
  struct flock range = Range(F_UNLCK, kWholeLock);
  fcntl(fd_, F_OFD_SETLK, &range);
}

bool HostLedger::IsHeld(uint32_t index) const {
  struct flock range = Range(F_WRLCK, LockOf(index));
  return fcntl(fd_, F_OFD_GETLK, &range) != 0 || range.l_type != F_UNLCK;
}

void HostLedger::AfterForkInChild() {
  new (&mutex_) std::mutex;
  Close();
  refused_ = false;
}

}  // namespace atp::shim
