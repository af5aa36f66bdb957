#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "netlink/unique_fd.hpp"
#include "support/catch.hpp"

namespace support {

/// A program to run: found in PATH, with this environment and nothing else.
struct Program {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment = plain_environment();
  std::string input;

  [[nodiscard]] static std::map<std::string, std::string> plain_environment();
};

/// How it ended. As in a shell, `status` is 128 and the signal for a program that was killed.
struct Ending {
  int status = 0;
  std::string out;
  std::string err;
  std::chrono::milliseconds elapsed{};
};

/// A child process in a process group of its own, which is killed when the object goes.
class Process {
 public:
  explicit Process(const Program& program);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process(Process&&) = delete;
  Process& operator=(Process&&) = delete;
  ~Process();

  /// Waits as a container runtime does: until the program has ended *and* nobody holds its stdout and stderr open. Fails the test after
  /// two minutes.
  [[nodiscard]] Ending wait();
  void send(int signal) const;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  void read_output();

  pid_t pid_ = -1;
  netlink::UniqueFd out_;
  netlink::UniqueFd err_;
  Ending ending_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

[[nodiscard]] inline Ending run(const Program& program) {
  return Process(program).wait();
}

/// Runs a shell command that has to succeed and returns its stdout.
std::string sh(const std::string& command);
/// A shell command, for Process when it is to go on in the background and for run() when it may fail.
[[nodiscard]] Program shell(const std::string& command);

/// Looks every 10 ms until `condition` holds; fails the test, saying `what` was waited for, when `limit` has passed.
template <typename Condition>
void wait_until(const std::string& what, Condition condition, std::chrono::milliseconds limit = std::chrono::seconds{20}) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    INFO("waited for: " << what);
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

}  // namespace support
