#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace support {
namespace {

constexpr std::chrono::seconds kPatience{120};

struct Pipe {
  netlink::UniqueFd read;
  netlink::UniqueFd write;

  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
};

netlink::UniqueFd input_file(const std::string& input) {
  netlink::UniqueFd file{::memfd_create("input", MFD_CLOEXEC)};
  REQUIRE(::write(file.get(), input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  REQUIRE(::lseek(file.get(), 0, SEEK_SET) == 0);
  return file;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

void append_what_is_there(const netlink::UniqueFd& from, std::string& to, bool& open) {
  std::array<char, 65536> buffer{};
  const ssize_t count = ::read(from.get(), buffer.data(), buffer.size());
  open = count > 0;
  to.append(buffer.data(), static_cast<std::size_t>(count > 0 ? count : 0));
}

}  // namespace

std::map<std::string, std::string> Program::plain_environment() {
  std::map<std::string, std::string> result{{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}, {"LC_ALL", "C"}};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) {
      result[name] = value;
    }
  }
  return result;
}

Process::Process(const Program& program) {
  Pipe out;
  Pipe err;
  const netlink::UniqueFd input = input_file(program.input);
  std::vector<std::string> environment;
  for (const auto& [name, value] : program.environment) {
    environment.push_back(name + "=" + value);
  }
  const std::vector<char*> argument_pointers = pointers(program.arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(input.get(), STDIN_FILENO);
    ::dup2(out.write.get(), STDOUT_FILENO);
    ::dup2(err.write.get(), STDERR_FILENO);
    ::execvpe(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  out_ = std::move(out.read);
  err_ = std::move(err.read);
}

Process::~Process() {
  if (pid_ > 0) {
    send(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Process::send(int signal) const {
  ::kill(-pid_, signal);
}

void Process::read_output() {
  bool out_open = true;
  bool err_open = true;
  while (out_open || err_open) {
    std::array<pollfd, 2> polled{pollfd{out_open ? out_.get() : -1, POLLIN, 0}, pollfd{err_open ? err_.get() : -1, POLLIN, 0}};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(start_ + kPatience - std::chrono::steady_clock::now());
    INFO("stdout so far: " << ending_.out << "\nstderr so far: " << ending_.err);
    REQUIRE(left.count() > 0);
    REQUIRE(::poll(polled.data(), polled.size(), static_cast<int>(left.count())) >= 0);
    if (polled[0].revents != 0) {
      append_what_is_there(out_, ending_.out, out_open);
    }
    if (polled[1].revents != 0) {
      append_what_is_there(err_, ending_.err, err_open);
    }
  }
}

Ending Process::wait() {
  read_output();
  int status = 0;
  REQUIRE(::waitpid(pid_, &status, 0) == pid_);
  pid_ = -1;
  ending_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ending_.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start_);
  return ending_;
}

Program shell(const std::string& command) {
  return {.arguments = {"bash", "-c", command}, .input = {}};
}

std::string sh(const std::string& command) {
  const Ending ending = run(shell(command));
  INFO(command << "\nstdout: " << ending.out << "\nstderr: " << ending.err);
  REQUIRE(ending.status == 0);
  return ending.out;
}

}  // namespace support
