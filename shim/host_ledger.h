// SPDX-License-Identifier: Apache-2.0
// Who on this machine promises how much host memory: one file for all processes of a user
// (/dev/shm/atp-ledger-1.UID, or ATP_LEDGER). Each process has an entry and holds a lock of the
// kernel on it (F_OFD_SETLK), which goes with the process however it ends; the entry of a process
// that is gone counts no more. Without a file (refused, ATP_LEDGER=off, and on the simulated
// machine, where each process has a machine of its own, unless ATP_LEDGER names one) a process
// counts for itself only.
//
// Any thread. System calls, so not for each allocation: host_promise.h takes chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "shim/settings.h"

namespace atp::shim {

struct LedgerDevice {
  uint64_t card = 0;     // the same number in every process that uses the card
  uint64_t managed = 0;  // bytes that the process may have there
  uint64_t room = 0;     // what the card has for managed memory, as the process sees it
};

struct LedgerEntry {
  int32_t pid = 0;
  char name[16] = "";
  LedgerDevice devices[kMaxDevices];
};

// What of all this the host must be able to hold. Managed memory that fits its card needs no host;
// that of a card whose processes have more than it holds needs the host for all of it, because any
// of it may be evicted, and what has been on the host stays there until it is freed.
uint64_t HostNeed(std::span<const LedgerEntry* const> entries);

class HostLedger {
 public:
  // `own`: of this process, to be changed; `living`: of all processes, own included. `*available`:
  // what the host had when nothing was promised yet, kept with the ledger.
  using Body = std::function<void(LedgerEntry* own, std::span<const LedgerEntry* const> living,
                                  uint64_t* available)>;

  explicit HostLedger(const char* path = nullptr) : path_(path) {}  // null: no file
  ~HostLedger() { Close(); }
  HostLedger(const HostLedger&) = delete;
  HostLedger& operator=(const HostLedger&) = delete;

  // Runs `body` while nobody else on the machine does. Where the file cannot be had, or is held for
  // a second by somebody who does not go on, for this process alone.
  void With(const Body& body);
  bool shared() const { return file_ != nullptr; }
  // In a child made by fork, before anything else: what is open there belongs to the parent, and
  // would outlive it.
  void AfterForkInChild();

 private:
  static constexpr uint32_t kEntries = 256;
  struct File {
    char magic[8];
    uint64_t available;
    LedgerEntry entries[kEntries];
  };

  bool Open();
  void Close();
  bool StillOurs() const;
  bool TakeEntry();
  bool Lock();
  void Unlock();
  bool IsHeld(uint32_t index) const;
  void Describe(LedgerEntry* entry) const;

  std::mutex mutex_;
  const char* const path_;
  bool refused_ = false;
  int fd_ = -1;
  uint64_t device_ = 0, inode_ = 0;  // of the file
  File* file_ = nullptr;
  uint32_t own_ = 0;
  LedgerEntry alone_;  // where there is no file
  uint64_t alone_available_ = 0;
};

// The file that this user's processes share.
bool UsualLedger(char* path, size_t size);

}  // namespace atp::shim
