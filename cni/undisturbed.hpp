#pragma once

#include <csignal>

namespace cni {

/// From now on SIGTERM, SIGINT and SIGHUP wait, for good: what has begun to bring a device home is not to be stopped half-way, and its
/// answer is to get out. Gives the mask as it was. Programs we start have them unblocked.
inline sigset_t block_termination() {
  sigset_t blocked{};
  sigset_t before{};
  ::sigemptyset(&blocked);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    ::sigaddset(&blocked, signal);
  }
  ::sigprocmask(SIG_BLOCK, &blocked, &before);
  return before;
}

/// The same for as long as it lives.
class Undisturbed {
 public:
  Undisturbed() : before_(block_termination()) {}
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  Undisturbed(Undisturbed&&) = delete;
  Undisturbed& operator=(Undisturbed&&) = delete;
  ~Undisturbed() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace cni
