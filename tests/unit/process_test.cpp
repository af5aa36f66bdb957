#include "cni/process.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "netlink/error.hpp"
#include "netlink/unique_fd.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace std::chrono_literals;
using cni::Ending;
using netlink::UniqueFd;
using Kind = cni::Ending::Kind;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

cni::Command command(std::filesystem::path program, std::vector<std::string> arguments = {}) {
  cni::Command command;
  command.program = std::move(program);
  command.arguments = std::move(arguments);
  command.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  command.time_limit = 20s;
  return command;
}

cni::Command script(const support::TempDir& directory, const std::string& text) {
  return command(directory.write("program", "#!/bin/sh\n" + text + "\n", 0755));
}

struct Timed {
  Ending ending;
  std::chrono::milliseconds elapsed;
};

Timed timed_run(const cni::Command& command) {
  const auto start = std::chrono::steady_clock::now();
  Ending ending = cni::run(command);
  return {std::move(ending), std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start)};
}

/// A process that is not our child: whether it lives is read from procfs, where one that nobody has reaped yet counts as dead.
class Grandchild {
 public:
  explicit Grandchild(const std::string& printed_pid) : pid_(std::stoi(printed_pid)) {}
  Grandchild(const Grandchild&) = delete;
  Grandchild& operator=(const Grandchild&) = delete;
  ~Grandchild() { end(); }

  [[nodiscard]] bool is_alive() const {
    const UniqueFd stat{::open(("/proc/" + std::to_string(pid_) + "/stat").c_str(), O_RDONLY | O_CLOEXEC)};
    std::string text(512, '\0');
    const auto size = ::read(stat.get(), text.data(), text.size());
    if (size <= 0) {
      return false;
    }
    const char state = text[text.rfind(')') + 2];
    return state != 'Z' && state != 'X';
  }
  [[nodiscard]] bool is_gone_soon() const {
    for (int tries = 0; tries < 200 && is_alive(); ++tries) {
      std::this_thread::sleep_for(10ms);
    }
    return !is_alive();
  }
  void end() const {
    if (is_alive()) {
      ::kill(pid_, SIGKILL);
    }
  }

 private:
  pid_t pid_;
};

/// SIGTERM blocked and SIGPIPE ignored, as the plugin has them.
class PluginSignals {
 public:
  PluginSignals() : pipe_handler_(std::signal(SIGPIPE, SIG_IGN)) {
    sigset_t terminate;
    ::sigemptyset(&terminate);
    ::sigaddset(&terminate, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &terminate, &mask_);
  }
  PluginSignals(const PluginSignals&) = delete;
  PluginSignals& operator=(const PluginSignals&) = delete;
  ~PluginSignals() {
    std::signal(SIGPIPE, pipe_handler_);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sighandler_t pipe_handler_;
  sigset_t mask_{};
};

struct SignalState {
  std::uint64_t blocked;
  std::uint64_t ignored;

  bool operator==(const SignalState&) const = default;
};

/// Of a process, or of the one that looks.
SignalState signal_state(const std::string& process) {
  const std::string text = cni::run(command("/bin/grep", {"-E", "^Sig(Blk|Ign)", "/proc/" + process + "/status"})).output;
  return {std::stoull(text.substr(8, 16), nullptr, 16), std::stoull(text.substr(33, 16), nullptr, 16)};
}

constexpr std::uint64_t bit(int signal) {
  return std::uint64_t{1} << static_cast<unsigned>(signal - 1);
}

std::ptrdiff_t count_own_descriptors() {
  return std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, {});
}

bool has_child() {
  return ::waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD;
}

int exit_handlers_run = 0;

}  // namespace

TEST_CASE("a program gets its arguments and input, and its output, errors and exit status come back") {
  const support::TempDir directory;
  cni::Command program = script(directory, R"(printf '%s,' "$#" "$@"; cat; echo complaint >&2; exit 3)");
  program.arguments = {"one", "two words", ""};
  program.input = "the input";
  const Ending ending = cni::run(program);
  CHECK(ending.kind == Kind::exited);
  CHECK(ending.status == 3);
  CHECK(ending.output == "3,one,two words,,the input");
  CHECK(ending.errors == "complaint\n");
}

TEST_CASE("bytes that are no text go in and come back unchanged") {
  using namespace std::string_view_literals;
  cni::Command program = command("/bin/cat");
  program.input = "\0\377{\n\0\001\r\n"sv;
  const Ending ending = cni::run(program);
  CHECK(ending.kind == Kind::exited);
  CHECK(ending.output == program.input);
}

TEST_CASE("a program that prints nothing has no output") {
  const Ending ending = cni::run(command("/bin/true"));
  CHECK(ending.kind == Kind::exited);
  CHECK(ending.status == 0);
  CHECK(ending.output.empty());
  CHECK(ending.errors.empty());
}

TEST_CASE("a large input arrives whole, also where the program opens /dev/stdin") {
  const std::string input(kMiB, 'i');
  cni::Command program = command("/bin/cat", GENERATE(std::vector<std::string>{}, std::vector<std::string>{"/dev/stdin"}));
  program.input = input;
  const Ending ending = cni::run(program);
  CHECK(ending.kind == Kind::exited);
  CHECK(ending.output == input);
}

TEST_CASE("a program that does not read its large input is no error") {
  const support::TempDir directory;
  const std::string input(kMiB, 'i');
  cni::Command program =
      script(directory, GENERATE("echo fine", "exec <&-; sleep 0.1; echo fine", "head -c 1 >/dev/null; sleep 0.1; echo fine"));
  program.input = input;
  const Ending ending = cni::run(program);
  CHECK(ending.kind == Kind::exited);
  CHECK(ending.status == 0);
  CHECK(ending.output == "fine\n");
}

TEST_CASE("a program that prints without end is killed with its children at the limit") {
  const support::TempDir directory;
  cni::Command program = script(directory, "sleep 60 & printf '%-10s' $!; exec cat /dev/zero");
  program.output_limit = 100'000;
  const Timed run = timed_run(program);
  CHECK(run.ending.kind == Kind::printed_too_much);
  CHECK(run.ending.output.size() == program.output_limit);
  CHECK(run.elapsed < 20s);
  CHECK(Grandchild{run.ending.output.substr(0, 10)}.is_gone_soon());
}

TEST_CASE("output is accepted up to its limit and not one byte more") {
  const auto [printed, kind] = GENERATE(std::pair{"1000", Kind::exited}, std::pair{"1001", Kind::printed_too_much});
  cni::Command program = command("/usr/bin/head", {"-c", printed, "/dev/zero"});
  program.output_limit = 1000;
  const Ending ending = cni::run(program);
  CHECK(ending.kind == kind);
  CHECK(ending.output.size() == 1000);
}

TEST_CASE("a program that hangs is killed with its children when its time is up") {
  const support::TempDir directory;
  cni::Command program =
      script(directory, "sleep 60 & echo $!; " + GENERATE(as<std::string>{}, "wait", "trap '' TERM INT HUP; wait; wait", "kill -STOP $$"));
  program.time_limit = 300ms;
  const Timed run = timed_run(program);
  CAPTURE(run.elapsed.count());
  CHECK(run.ending.kind == Kind::timed_out);
  CHECK(run.elapsed >= program.time_limit);
  CHECK(run.elapsed < program.time_limit + 20s);
  CHECK(Grandchild{run.ending.output}.is_gone_soon());
}

TEST_CASE("a program without any time is killed at once") {
  cni::Command program = command("/bin/sleep", {"60"});
  program.time_limit = GENERATE(0ms, -5ms);
  const Timed run = timed_run(program);
  CHECK(run.ending.kind == Kind::timed_out);
  CHECK(run.elapsed < 20s);
}

TEST_CASE("a grandchild that keeps the output open does not hold us up, and lives on") {
  const support::TempDir directory;
  const Timed run = timed_run(script(directory, "sleep 60 & echo $!"));
  CAPTURE(run.elapsed.count());
  CHECK(run.ending.kind == Kind::exited);
  CHECK(run.elapsed < 20s);
  const Grandchild grandchild{run.ending.output};
  CHECK(grandchild.is_alive());
}

TEST_CASE("a grandchild that prints without end after the program's exit does not hold us up") {
  const support::TempDir directory;
  cni::Command program = script(directory, "cat /dev/zero & echo $! >&2");
  program.output_limit = 256 * kMiB;
  const Timed run = timed_run(program);
  CAPTURE(run.elapsed.count());
  CHECK(run.ending.kind == Kind::exited);
  CHECK(run.elapsed < 20s);
  CHECK(Grandchild{run.ending.errors}.is_gone_soon());  // of SIGPIPE, as nobody reads any more
}

TEST_CASE("all that a program printed before its exit is there") {
  // More than one read takes at a time, so that much of it is still in the pipe at the exit. 1031 is F_SETPIPE_SZ.
  const cni::Command program = command("/usr/bin/perl", {"-e", "fcntl(STDOUT, 1031, 1 << 20) or die; syswrite(STDOUT, 'x' x (1 << 20))"});
  for (int round = 0; round < 10; ++round) {
    const Ending ending = cni::run(program);
    CHECK(ending.errors.empty());
    CHECK(ending.output.size() == kMiB);
  }
}

TEST_CASE("of 3 MB of errors the first 32 KiB are kept, and they do no harm") {
  const support::TempDir directory;
  const Ending ending = cni::run(script(directory, "echo first >&2; head -c 3000000 /dev/zero | tr '\\0' e >&2; echo done"));
  CHECK(ending.kind == Kind::exited);
  CHECK(ending.output == "done\n");
  CHECK(ending.errors == "first\n" + std::string((std::size_t{32} << 10U) - 6, 'e'));
}

TEST_CASE("a program that a signal killed says which") {
  const support::TempDir directory;
  const int signal = GENERATE(SIGKILL, SIGTERM, SIGPIPE);
  const PluginSignals signals;
  const Ending ending = cni::run(script(directory, "echo started; kill -" + std::to_string(signal) + " $$; sleep 60"));
  CHECK(ending.kind == Kind::killed);
  CHECK(ending.status == signal);
  CHECK(ending.output == "started\n");
}

TEST_CASE("a program that cannot be started is an error with its path and reason, and leaves nothing behind") {
  const support::TempDir directory;
  const std::vector<std::pair<std::filesystem::path, int>> cases{
      {directory.path() / "missing", ENOENT},
      {directory.path(), EACCES},
      {directory.write("forbidden", "#!/bin/sh\n", 0644), EACCES},
      {directory.write("no-shebang", "echo hello\n", 0755), ENOEXEC},
      {directory.write("no-interpreter", "#!/missing\n", 0755), ENOENT},
  };
  for (const auto& [program, reason] : cases) {
    CAPTURE(program);
    const auto descriptors = count_own_descriptors();
    try {
      (void)cni::run(command(program));
      FAIL("it was started");
    } catch (const netlink::Error& error) {
      CHECK(error.error_number() == reason);
      CHECK_THAT(error.what(), Catch::Matchers::StartsWith("run '" + program.string() + "': "));
    }
    CHECK(count_own_descriptors() == descriptors);
    CHECK_FALSE(has_child());
  }
}

TEST_CASE("a program that cannot be started does not run our exit handlers") {
  static const int registered = std::atexit([] { ++exit_handlers_run; });
  REQUIRE(registered == 0);
  CHECK_THROWS_AS(cni::run(command("/missing")), netlink::Error);
  CHECK(exit_handlers_run == 0);
}

TEST_CASE("a program whose exit status the kernel does not keep is an error") {
  const auto handler = std::signal(SIGCHLD, SIG_IGN);
  CHECK_THROWS_WITH(cni::run(command("/bin/sleep", {"0.1"})), "wait for '/bin/sleep': No child processes");
  std::signal(SIGCHLD, handler);
}

TEST_CASE("a program that ran leaves no descriptor and no zombie behind") {
  const auto descriptors = count_own_descriptors();
  CHECK(cni::run(command("/bin/true")).kind == Kind::exited);
  CHECK(count_own_descriptors() == descriptors);
  CHECK_FALSE(has_child());
}

TEST_CASE("a program's environment is exactly what it was given") {
  cni::Command program = command("/usr/bin/env");
  program.environment = {"CNI_COMMAND=ADD", "CNI_ARGS=A=1;B=two words", "EMPTY="};
  CHECK(cni::run(program).output == "CNI_COMMAND=ADD\nCNI_ARGS=A=1;B=two words\nEMPTY=\n");
}

TEST_CASE("a program inherits one descriptor and no other") {
  const UniqueFd file{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const UniqueFd lower{::fcntl(file.get(), F_DUPFD, 40)};
  const UniqueFd inherited{::fcntl(file.get(), F_DUPFD_CLOEXEC, 50)};
  const UniqueFd higher{::fcntl(file.get(), F_DUPFD, 60)};
  REQUIRE(inherited.get() == 50);
  cni::Command program = command("/bin/ls", {"/proc/self/fd"});  // 3 is the directory that ls reads
  CHECK(cni::run(program).output == "0\n1\n2\n3\n");
  program.inherited_fd = inherited.get();
  CHECK(cni::run(program).output == "0\n1\n2\n3\n50\n");
  CHECK(::fcntl(inherited.get(), F_GETFD) == FD_CLOEXEC);
}

TEST_CASE("a lock stays held as long as somebody lives who inherited it") {
  const support::TempDir directory;
  const std::filesystem::path path = directory.write("lock", "");
  UniqueFd lock{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
  const bool is_inherited = GENERATE(true, false);
  cni::Command program = script(directory, "sleep 60 >/dev/null 2>&1 & echo $!");
  if (is_inherited) {
    program.inherited_fd = lock.get();
  }
  const Grandchild grandchild{cni::run(program).output};
  lock.reset();

  const UniqueFd other{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  REQUIRE(grandchild.is_alive());
  CHECK(::flock(other.get(), LOCK_EX | LOCK_NB) == (is_inherited ? -1 : 0));
  grandchild.end();
  REQUIRE(grandchild.is_gone_soon());
  CHECK(::flock(other.get(), LOCK_EX | LOCK_NB) == 0);
}

TEST_CASE("a program starts with no signal blocked and SIGPIPE not ignored, and our own signals stay as they are") {
  const PluginSignals signals;
  const SignalState before = signal_state(std::to_string(::getpid()));
  REQUIRE((before.blocked & bit(SIGTERM)) != 0);
  REQUIRE((before.ignored & bit(SIGPIPE)) != 0);
  const SignalState child = signal_state("self");
  CHECK(child.blocked == 0);
  CHECK(child.ignored == (before.ignored & ~bit(SIGPIPE)));
  CHECK((signal_state(std::to_string(::getpid())) == before));
}
