// SPDX-License-Identifier: Apache-2.0
// Holds the machine that several programs share: a thread for each of them, which does the
// program's calls on it when its turn has come. A program that ends, in whatever way, gives back
// what it had on the card at the virtual time of its last call.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sim/card/turn_table.h"
#include "sim/card/wire.h"
#include "sim/machine/timing_machine.h"

namespace atp::sim {

class CardServer {
 public:
  // `timeline`: a file for what happens on the card; empty = none.
  CardServer(unsigned members, const std::string& timeline)
      : table_(members), timeline_(timeline) {}

  // Serves a connection until its program has left. Takes the descriptor.
  void Serve(int socket);
  bool Over() { return table_.Over(); }

 private:
  bool Join(int socket, pid_t process);
  std::string MakeMachine(const MachineConfig& config);
  std::string Answer(Op op, Lane lane, Reader* in);
  std::string ProcessesOn(int device);
  std::string AnswerOnStreams(Op op, Lane lane, Reader* in);
  std::string AnswerAll(const std::string& questions, Time* last);

  TurnTable table_;
  const std::string timeline_;
  std::mutex mutex_;  // of joining
  MachineConfig config_;
  std::unique_ptr<TimingMachine> machine_;
};

}  // namespace atp::sim
