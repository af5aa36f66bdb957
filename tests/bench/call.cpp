// Own time is the wall time of a call less the time that the kernel took for the request that moves the NIC, nearly all of which is spent
// waiting for RCU, in steps of some milliseconds. Both are of the same call: a seccomp filter stops the program at that request and nowhere
// else, and it is timed from the stop to its return. The request is the one that carries IFLA_NET_NS_FD; the filter, which sees no more
// than registers, knows it by its size, from a first call that is stopped at every request. The time that the program is held by this one
// is no own time of it, while what the kernel needs to stop it and to resume it counts as such.
#include "call.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr const char* kInput = "/run/input";
constexpr const char* kOutput = "/run/output";
constexpr const char* kErrors = "/run/errors";

void write_file(const char* path, const std::string& text) {
  const int fd = check(::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), path);
  check(::write(fd, text.data(), text.size()), path);
  ::close(fd);
}

std::string read_file(const char* path) {
  std::array<char, 65536> buffer{};
  const int fd = check(::open(path, O_RDONLY | O_CLOEXEC), path);
  const int size = check(::read(fd, buffer.data(), buffer.size()), path);
  ::close(fd);
  return {buffer.data(), static_cast<std::size_t>(size)};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const auto& text : texts) {
    result.push_back(const_cast<char*>(text.c_str()));
  }
  result.push_back(nullptr);
  return result;
}

/// Stops at the requests of this size, or at all.
std::vector<sock_filter> stop_at(MoveSize size) {
  constexpr auto kCall = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto kSize = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t));  // of sendto, little endian
  return {{BPF_LD | BPF_W | BPF_ABS, 0, 0, kCall},
          {BPF_JMP | BPF_JEQ | BPF_K, 0, 3, __NR_sendto},
          {BPF_LD | BPF_W | BPF_ABS, 0, 0, kSize},
          {static_cast<std::uint16_t>(BPF_JMP | BPF_K | (size ? BPF_JEQ : BPF_JGE)), 0, 1, size.value_or(0)},
          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_TRACE},
          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
}

/// In the child of vfork: this process sleeps until the program has started.
[[noreturn]] void start(char** words, char** environment, const std::array<int, 3>& files, const sock_fprog* filter) {
  for (int number = 0; number < 3; ++number) {
    ::dup2(files[static_cast<std::size_t>(number)], number);
  }
  if (filter == nullptr || (::ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) == 0)) {
    ::execve(words[0], words, environment);
  }
  ::_exit(127);
}

/// The size of the request that the process is about to send, if that moves a NIC.
MoveSize size_of_move(pid_t process) {
  __ptrace_syscall_info call{};
  check(::ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof call, &call), "PTRACE_GET_SYSCALL_INFO");
  alignas(nlmsghdr) std::array<std::byte, 4096> request{};
  iovec here{request.data(), std::min<std::size_t>(request.size(), call.seccomp.args[2])};
  iovec there{reinterpret_cast<void*>(call.seccomp.args[1]), here.iov_len};
  const auto size = check(::process_vm_readv(process, &here, 1, &there, 1, 0), "process_vm_readv");
  const auto* header = reinterpret_cast<const nlmsghdr*>(request.data());
  if (!NLMSG_OK(header, static_cast<unsigned>(size)) || header->nlmsg_type != RTM_NEWLINK) {
    return std::nullopt;
  }
  auto left = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof(ifinfomsg)));
  const auto* attribute = IFLA_RTA(NLMSG_DATA(header));
  for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == IFLA_NET_NS_FD) {
      return header->nlmsg_len;
    }
  }
  return std::nullopt;
}

int wait_for(pid_t process, rusage& usage) {
  int status = 0;
  check(::wait4(process, &status, 0, &usage), "wait4");
  return status;
}

/// Follows the process to its end; returns its status.
int watch(pid_t process, rusage& usage, MoveSize& move_size, Cost& cost) {
  int status = wait_for(process, usage);  // stopped by its execve
  auto stopped = Clock::now();
  check(::ptrace(PTRACE_SETOPTIONS, process, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), "PTRACE_SETOPTIONS");
  int signal = 0;
  while (WIFSTOPPED(status)) {
    const bool is_request = status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8);
    const auto size = is_request ? size_of_move(process) : std::nullopt;
    const auto start = Clock::now();
    cost.held += Milliseconds(start - stopped).count();
    check(::ptrace(size ? PTRACE_SYSCALL : PTRACE_CONT, process, 0, signal), "resume the traced process");
    status = wait_for(process, usage);
    stopped = Clock::now();
    if (size) {
      move_size = size;
      cost.moving += Milliseconds(stopped - start).count();
    }
    const int reason = WIFSTOPPED(status) ? WSTOPSIG(status) : SIGTRAP;
    signal = (reason & ~0x80) == SIGTRAP ? 0 : reason;  // 0x80: the return of a system call
  }
  return status;
}

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

}  // namespace

int check(long result, const std::string& what) {
  if (result < 0) {
    throw std::runtime_error(what + ": " + std::strerror(errno));
  }
  return static_cast<int>(result);
}

Cost call(const Command& command, MoveSize* watched) {
  write_file(kInput, command.input);
  const std::array<int, 3> files{check(::open(kInput, O_RDONLY | O_CLOEXEC), kInput),
                                 check(::open(kOutput, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), kOutput),
                                 check(::open(kErrors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), kErrors)};
  auto words = pointers(command.words);
  auto environment = pointers(command.environment);
  auto instructions = stop_at(watched != nullptr ? *watched : std::nullopt);
  const sock_fprog filter{static_cast<unsigned short>(instructions.size()), instructions.data()};
  rusage usage{};
  Cost cost;
  const auto began = Clock::now();
  const pid_t process = check(::vfork(), "vfork");
  if (process == 0) {
    start(words.data(), environment.data(), files, watched != nullptr ? &filter : nullptr);
  }
  const int status = watched != nullptr ? watch(process, usage, *watched, cost) : wait_for(process, usage);
  cost.wall = Milliseconds(Clock::now() - began).count();
  for (const int file : files) {
    ::close(file);
  }
  cost.processor = milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
  cost.peak_memory = usage.ru_maxrss;
  cost.output = read_file(kOutput);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(command.words[0] + " ended with " + std::to_string(status) + ": " + cost.output + read_file(kErrors));
  }
  if (watched != nullptr && cost.moving == 0) {
    throw std::runtime_error(command.words[0] + " was not seen to move a NIC");
  }
  return cost;
}
