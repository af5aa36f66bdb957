#pragma once

#include <csignal>

namespace cni {

/// While it lives, SIGTERM, SIGINT and SIGHUP wait: bringing a device home is not to be stopped half-way. Programs we start have them
/// unblocked.
class Undisturbed {
 public:
  Undisturbed() {
    sigset_t blocked{};
    ::sigemptyset(&blocked);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      ::sigaddset(&blocked, signal);
    }
    ::sigprocmask(SIG_BLOCK, &blocked, &before_);
  }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  Undisturbed(Undisturbed&&) = delete;
  Undisturbed& operator=(Undisturbed&&) = delete;
  ~Undisturbed() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace cni
