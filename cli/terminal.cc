// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/error.h"

namespace atp::cli {
namespace {

// Another screen, no cursor, no wrapping; and back. ECMA-48 and xterm's private modes.
constexpr char kEnter[] = "\033[?1049h\033[?25l\033[?7l";
constexpr char kLeave[] = "\033[?7h\033[?25h\033[?1049l";

constexpr int kWatched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kWatched) sigaddset(&set, number);
  return set;
}

void Write(const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // the terminal is gone: the next event says so
    done += static_cast<size_t>(wrote);
  }
}

}  // namespace

bool Terminal::Possible() { return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO); }

Terminal::Terminal() {
  const sigset_t watched = Watched();
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0 || tcgetattr(STDIN_FILENO, &before_) != 0) {
    throw CommandError(1, std::string("the terminal: ") + std::strerror(errno));
  }
  Enter();
}

Terminal::~Terminal() {
  Leave();
  close(signals_);
}

void Terminal::Enter() {
  termios now = before_;
  now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  now.c_cc[VMIN] = 0;
  now.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &now);
  Write(kEnter);
}

void Terminal::Leave() const {
  Write(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

ScreenSize Terminal::Size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

// Line by line over what is there, so that nothing flickers.
void Terminal::Draw(const std::string& text) const {
  std::string out = "\033[H";
  for (const char c : text) {
    if (c == '\n') {
      out += "\033[K\r\n";
    } else {
      out += c;
    }
  }
  Write(out + "\033[K\033[J");
}

Terminal::Event Terminal::Await(int milliseconds) {
  pollfd wanted[] = {{signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
  const int ready = poll(wanted, 2, milliseconds);
  if (ready <= 0) return Event::kTime;
  return wanted[0].revents != 0 ? OnSignal() : OnKey();
}

Terminal::Event Terminal::OnSignal() {
  signalfd_siginfo info{};
  if (read(signals_, &info, sizeof info) != sizeof info) return Event::kTime;
  const int number = static_cast<int>(info.ssi_signo);
  if (number == SIGWINCH || number == SIGCONT) return Event::kRedraw;
  if (number == SIGTSTP) {
    Leave();
    raise(SIGSTOP);
    Enter();
    return Event::kRedraw;
  }
  ended_by_ = number;
  return Event::kQuit;
}

Terminal::Event Terminal::OnKey() {
  char key = 0;
  if (read(STDIN_FILENO, &key, 1) != 1) {  // it was hung up
    ended_by_ = SIGHUP;
    return Event::kQuit;
  }
  return key == 'q' || key == 'Q' ? Event::kQuit : Event::kRedraw;
}

}  // namespace atp::cli
