#include "cni/lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "cni/error.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kPause{5};

netlink::UniqueFd open_in_lock_directory(const std::string& name, int flags) {
  const auto path = fmt::format("{}/{}", kLockDirectory, name);
  netlink::UniqueFd fd{::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!fd.is_open() && errno == ENOENT && (flags & O_CREAT) != 0) {
    ::mkdir(kLockDirectory, 0700);
    fd = netlink::UniqueFd{::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600)};
  }
  if (!fd.is_open()) {
    netlink::throw_errno("open " + path);
  }
  return fd;
}

std::string mark_name(const std::string& container_id, const std::string& interface_name) {
  return fmt::format("{}:{}.del", container_id, interface_name);
}

}  // namespace

DeviceLock DeviceLock::acquire(const std::string& key, const std::string& purpose, const Deadline& deadline) {
  const auto name = key + ".lock";
  auto fd = open_in_lock_directory(name, O_RDWR | O_CREAT);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      netlink::throw_errno("lock " + name);
    }
    if (deadline.has_passed()) {
      const auto holder = netlink::read_line(fmt::format("{}/{}", kLockDirectory, name)).value_or("");
      throw Error(Code::try_again_later, fmt::format("the lock on {} is held by {}", key, holder.empty() ? "another process" : holder),
                  "It is released when that process ends.");
    }
    std::this_thread::sleep_for(deadline.at_most(kPause));
  }
  const auto text = fmt::format("pid {}: {}\n", ::getpid(), purpose);
  // Only for those who wait, so that a full disk does not matter.
  if (::ftruncate(fd.get(), 0) == 0) {
    (void)!::pwrite(fd.get(), text.data(), text.size(), 0);
  }
  return DeviceLock{std::move(fd)};
}

DeviceLock::~DeviceLock() {
  if (fd_.is_open()) {
    ::flock(fd_.get(), LOCK_UN);
  }
}

void leave_mark(const std::string& container_id, const std::string& interface_name) {
  (void)open_in_lock_directory(mark_name(container_id, interface_name), O_WRONLY | O_CREAT);
}

bool take_mark(const std::string& container_id, const std::string& interface_name) {
  return ::unlink(fmt::format("{}/{}", kLockDirectory, mark_name(container_id, interface_name)).c_str()) == 0;
}

}  // namespace cni
