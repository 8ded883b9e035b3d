// SPDX-License-Identifier: Apache-2.0
// A terminal taken over for a while: another screen, no cursor, keys at once. Gives back what it
// found, also when a signal ends or stops the program: signals are read here like keys. One of
// these at a time; one thread.
#pragma once

#include <termios.h>

#include <string>

#include "cli/top_screen.h"

namespace atp::cli {

class Terminal {
 public:
  // Of standard input and output. Throws CommandError when they are none.
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  static bool Possible();
  ScreenSize Size() const;
  void Draw(const std::string& text) const;

  enum class Event { kTime, kRedraw, kQuit };
  // Waits so long at most. Keys: q ends, a space redraws. A signal that asks to end is kept for
  // `ended_by`.
  Event Await(int milliseconds);
  int ended_by() const { return ended_by_; }  // a signal, 0 = none

 private:
  void Enter();
  void Leave() const;
  Event OnSignal();
  Event OnKey();

  termios before_{};
  int signals_ = -1;
  int ended_by_ = 0;
};

}  // namespace atp::cli
