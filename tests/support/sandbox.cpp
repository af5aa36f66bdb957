#include "support/sandbox.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "support/catch.hpp"

namespace support {
namespace {

netlink::UniqueFd open_or_fail(const char* path) {
  netlink::UniqueFd fd{::open(path, O_RDONLY | O_CLOEXEC)};
  INFO(path << ": " << std::strerror(errno));
  REQUIRE(fd.is_open());
  return fd;
}

void mount_or_fail(const char* source, const char* type, const char* directory, unsigned long flags) {
  const int result = ::mount(source, directory, type, flags, nullptr);
  INFO("mount " << source << " on " << directory << ": " << std::strerror(errno));
  REQUIRE(result == 0);
}

/// A fresh machine has neither /var/lib/cni nor /etc/cni, and a test must not leave them behind: what they lie in is private too.
void mount_own_directories() {
  for (const char* directory : {"/run", "/var/log", "/var/lib"}) {
    mount_or_fail("tmpfs", "tmpfs", directory, 0);
  }
  const std::filesystem::path etc = "/run/etc";
  std::filesystem::create_directory(etc);
  for (const char* name : {"alternatives", "group", "iproute2", "ld.so.cache", "nsswitch.conf", "passwd"}) {
    if (const auto original = std::filesystem::path("/etc") / name; std::filesystem::exists(original)) {
      std::filesystem::copy(original, etc / name, std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    }
  }
  mount_or_fail("/run/etc", nullptr, "/etc", MS_BIND);
  for (const char* directory : {"/var/lib/cni", "/etc/cni", "/run/netns"}) {
    std::filesystem::create_directories(directory);
  }
}

[[noreturn]] void be_init(int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGCHLD, SIG_IGN);  // init is the parent of every orphan, and the kernel reaps the children of who ignores this
  // procfs shows the PID namespace of whoever mounts it, so that only init can do this.
  const bool mounted = ::mount("proc", "/proc", "proc", 0, nullptr) == 0;
  [[maybe_unused]] const auto written = ::write(ready, mounted ? "y" : "n", 1);
  while (mounted) {
    ::pause();
  }
  ::_exit(1);
}

}  // namespace

Sandbox::Origin::Origin() {
  if (::geteuid() != 0) {
    FAIL("this test makes network, mount and PID namespaces, which needs root: run it with sudo");
  }
  network_ = open_or_fail("/proc/self/ns/net");
  mounts_ = open_or_fail("/proc/self/ns/mnt");
  processes_ = open_or_fail("/proc/self/ns/pid");
  directory_ = open_or_fail(".");
}

Sandbox::Origin::~Origin() {
  ::setns(network_.get(), CLONE_NEWNET);
  ::setns(processes_.get(), CLONE_NEWPID);
  ::setns(mounts_.get(), CLONE_NEWNS);
  [[maybe_unused]] const int result = ::fchdir(directory_.get());
}

Sandbox::Init::Init() {
  std::array<int, 2> ready{};
  REQUIRE(::pipe2(ready.data(), O_CLOEXEC) == 0);
  const netlink::UniqueFd read_end{ready[0]};
  netlink::UniqueFd write_end{ready[1]};
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    be_init(write_end.get());
  }
  write_end.reset();
  char answer = 'n';
  REQUIRE(::read(read_end.get(), &answer, 1) == 1);
  REQUIRE(answer == 'y');
}

Sandbox::Init::~Init() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Sandbox::Sandbox() {
  REQUIRE(::unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID) == 0);
  mount_or_fail("none", nullptr, "/", MS_REC | MS_PRIVATE);
  mount_or_fail("sysfs", "sysfs", "/sys", 0);
  mount_own_directories();
  init_.emplace();
  sh("ip link set lo up");
}

void Sandbox::add_pod(const std::string& name) {
  sh("ip netns add " + name + " && ip -n " + name + " link set lo up");
}

void Sandbox::add_nic(const std::string& name) {
  if (!has_fabric_) {
    sh("ip netns add fabric && ip -n fabric link add br0 mtu 9216 type bridge mcast_snooping 0 && ip -n fabric link set br0 up");
    has_fabric_ = true;
  }
  sh("ip link add " + name + " type veth peer name " + name + "-peer mtu 9216 netns fabric");
  sh("ip -n fabric link set " + name + "-peer master br0 up");
}

Holder::Holder(const std::string& net_ns)
    : mark_("/run/holder-of-" + net_ns),
      process_(shell("exec ip netns exec " + net_ns + " bash -c 'echo $$ > " + mark_ + ".new && mv " + mark_ + ".new " + mark_ +
                     " && exec sleep 1000'")) {
  wait_until("a process in " + net_ns, [this] { return std::filesystem::exists(mark_); });
}

std::string Holder::pid() const {
  return sh("echo -n $(cat " + mark_ + ")");
}

}  // namespace support
