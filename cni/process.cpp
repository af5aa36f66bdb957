// Boost.Process v2 compiled into this file, with std::filesystem: no Boost library has to be linked.
// Said here and not in the build, because no other file includes Boost.
#define BOOST_PROCESS_V2_SEPARATE_COMPILATION
#define BOOST_PROCESS_USE_STD_FS

#include "cni/process.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

// With std::filesystem, Process v2 of Boost 1.81 uses these two without including them.
#include <boost/optional.hpp>
#include <boost/type_traits.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/process/v2/posix/vfork_launcher.hpp>
#include <boost/process/v2/process.hpp>
#include <boost/process/v2/src.hpp>

#include "netlink/error.hpp"
#include "netlink/unique_fd.hpp"

namespace cni {

namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;
using boost::system::error_code;
using netlink::UniqueFd;

constexpr std::size_t kErrorsLimit = std::size_t{32} << 10U;

/// A file in memory and not a pipe: nothing has to be written while the child runs, a child that does not read it raises no SIGPIPE and
/// gets all of it when we are killed. And not a socket: those cannot be opened as /dev/stdin, which scripts do.
UniqueFd input_file(std::string_view input) {
  constexpr unsigned kNoExecSeal = 8U;  // MFD_NOEXEC_SEAL: required where vm.memfd_noexec is 2, unknown before Linux 6.3
  UniqueFd file{::memfd_create("stdin", MFD_CLOEXEC | kNoExecSeal)};
  if (!file.is_open() && errno == EINVAL) {
    file.reset(::memfd_create("stdin", MFD_CLOEXEC));
  }
  if (!file.is_open()) {
    netlink::throw_errno("make a file in memory for the input of a program");
  }
  for (std::size_t done = 0; done < input.size();) {
    const auto written = ::pwrite(file.get(), input.data() + done, input.size() - done, static_cast<off_t>(done));
    if (written <= 0) {
      netlink::throw_errno("write the input of a program");
    }
    done += static_cast<std::size_t>(written);
  }
  return file;
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    netlink::throw_errno("make a pipe");
  }
  return {UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

/// What the child does between vfork and exec. It runs in our memory there, so it makes system calls and nothing else.
struct ChildSetup {
  int input = -1;
  int output = -1;
  int errors = -1;
  std::optional<int> inherited_fd;

  error_code on_exec_setup(process::posix::default_launcher& /*launcher*/, const std::filesystem::path& /*program*/,
                           const char* const* /*arguments*/) const {
    sigset_t none;
    ::sigemptyset(&none);
    const bool is_done =
        ::setpgid(0, 0) == 0 && std::signal(SIGPIPE, SIG_DFL) != SIG_ERR && ::sigprocmask(SIG_SETMASK, &none, nullptr) == 0 &&
        ::dup2(input, STDIN_FILENO) >= 0 && ::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(errors, STDERR_FILENO) >= 0 &&
        // Boost closes only what is above the inherited descriptor, and our caller may have left us more than we know of.
        ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0 && (!inherited_fd || ::fcntl(*inherited_fd, F_SETFD, 0) == 0);
    return is_done ? error_code{} : error_code{errno, boost::system::system_category()};
  }

  /// Boost 1.81 would go on to exit() and run our atexit handlers in the child. A template because Boost looks for another signature than
  /// it calls.
  template <typename... Arguments>
  void on_exec_error(Arguments&&... /*unused*/) const {
    ::_exit(127);
  }
};

/// Kills and reaps the child unless `pid` says that it has ended: Boost leaves one that could not exec as a zombie, and an exception
/// must not leave one without supervision.
struct Launcher : process::posix::vfork_launcher {
  Launcher() = default;
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  Launcher(Launcher&&) = delete;
  Launcher& operator=(Launcher&&) = delete;
  ~Launcher() {
    if (pid > 0) {
      kill_group();
      ::waitpid(pid, nullptr, 0);
    }
  }

  void kill_group() const {
    if (pid > 0) {
      ::kill(-pid, SIGKILL);
    }
  }
};

using Process = process::basic_process<asio::io_context::executor_type>;

/// `io` must have no descriptor yet: the child of Boost 1.81 would make its epoll set anew, in our memory.
Process launch(Launcher& launcher, asio::io_context& io, const Command& command, const ChildSetup& setup) {
  std::vector<const char*> environment;
  environment.reserve(command.environment.size() + 1);
  for (const std::string& variable : command.environment) {
    environment.push_back(variable.c_str());
  }
  environment.push_back(nullptr);
  launcher.env = environment.data();
  if (command.inherited_fd) {
    launcher.fd_whitelist.push_back(*command.inherited_fd);
  }
  error_code error;
  Process child = launcher(io.get_executor(), error, command.program, command.arguments, setup);
  if (error) {
    throw netlink::Error("run '" + command.program.string() + "'", error.value());
  }
  return child;
}

/// What the child prints, kept up to a limit and dropped beyond it.
class Output {
 public:
  Output(asio::io_context& io, UniqueFd read_end, std::size_t limit) : pipe_(io, read_end.release()), limit_(limit) {
    pipe_.non_blocking(true);
  }

  /// Reads as it comes, and calls `on_more` each time.
  template <typename OnMore>
  void follow(OnMore on_more) {
    pipe_.async_wait(asio::posix::descriptor_base::wait_read, [this, on_more](const error_code& error) {
      if (!error && read_some()) {
        on_more();
        follow(on_more);
      }
    });
  }

  /// Reads what the pipe holds now, and does not wait for its end, which a grandchild may keep from coming.
  std::string finish() {
    asio::posix::descriptor_base::bytes_readable waiting;
    pipe_.io_control(waiting);
    const std::size_t goal = received_ + waiting.get();
    while (received_ < goal && read_some()) {
    }
    return std::move(kept_);
  }

  [[nodiscard]] bool is_too_much() const { return received_ > limit_; }

 private:
  /// False at the end of the pipe.
  bool read_some() {
    std::array<char, std::size_t{64} << 10U> chunk{};
    error_code error;
    const std::size_t size = pipe_.read_some(asio::buffer(chunk), error);
    kept_.append(chunk.data(), std::min(size, limit_ - kept_.size()));
    received_ += size;
    return !error || error == asio::error::would_block;
  }

  asio::posix::stream_descriptor pipe_;
  std::size_t limit_;
  std::size_t received_ = 0;
  std::string kept_;
};

/// A child that ended by itself while we were about to kill it has ended in time.
Ending::Kind judge(int status, bool is_out_of_time, bool is_too_much) {
  if (is_too_much) {
    return Ending::Kind::printed_too_much;
  }
  if (WIFEXITED(status)) {
    return Ending::Kind::exited;
  }
  return is_out_of_time ? Ending::Kind::timed_out : Ending::Kind::killed;
}

}  // namespace

Ending run(const Command& command) {
  const UniqueFd input = input_file(command.input);
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  asio::io_context io{1};
  Launcher launcher;
  Process child = launch(launcher, io, command, {input.get(), output.write_end.get(), errors.write_end.get(), command.inherited_fd});
  output.write_end.reset();
  errors.write_end.reset();

  Output printed{io, std::move(output.read_end), command.output_limit};
  Output complained{io, std::move(errors.read_end), kErrorsLimit};
  asio::steady_timer timer{io, command.time_limit};
  bool is_out_of_time = false;
  // Started first, so that no other handler can come, and kill, between the reaping of the child and this one.
  child.async_wait([&](const error_code& error, int /*status*/) {
    launcher.pid = -1;
    io.stop();
    if (error) {
      throw netlink::Error("wait for '" + command.program.string() + "'", error.value());
    }
  });
  printed.follow([&] {
    if (printed.is_too_much()) {
      launcher.kill_group();
    }
  });
  complained.follow([] {});
  timer.async_wait([&](const error_code& /*error*/) {
    is_out_of_time = true;
    launcher.kill_group();
  });
  io.run();

  const int status = child.native_exit_code();
  Ending ending;
  ending.output = printed.finish();
  ending.errors = complained.finish();
  ending.kind = judge(status, is_out_of_time, printed.is_too_much());
  ending.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  return ending;
}

}  // namespace cni
