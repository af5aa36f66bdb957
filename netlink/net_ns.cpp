#include "netlink/net_ns.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <string_view>
#include <utility>

#include "netlink/error.hpp"
#include "netlink/files.hpp"

namespace netlink {

namespace {

/// Of the namespace that the socket was opened in.
std::uint64_t cookie_of(int socket) {
  std::uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (::getsockopt(socket, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) != 0) {
    throw_errno("read the cookie of a network namespace (Linux 5.14 or newer is needed)");
  }
  return cookie;
}

/// Of the namespace that the thread is in.
std::uint64_t cookie_here() {
  const UniqueFd socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) {
    throw_errno("open a socket");
  }
  return cookie_of(socket.get());
}

UniqueFd open_own() {
  UniqueFd fd{::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)};
  if (!fd.is_open()) {
    throw_errno("open the network namespace of this thread");
  }
  return fd;
}

/// While one of them is open, no other namespace can have its inode.
bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

struct stat look_at(const UniqueFd& fd) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) {
    throw_errno("look at a network namespace");
  }
  return status;
}

}  // namespace

NetNs NetNs::current() {
  return NetNs{open_own()};
}

NetNs NetNs::again() const {
  UniqueFd fd{::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)};
  if (!fd.is_open()) {
    throw_errno("keep a network namespace open");
  }
  NetNs same{std::move(fd)};
  same.cookie_ = cookie_;
  return same;
}

std::uint64_t NetNs::cookie() const {
  if (cookie_ == 0) {
    const Visit visit{*this};
    cookie_ = cookie_here();
  }
  return cookie_;
}

void NetNs::learn_cookie(int socket) {
  cookie_ = cookie_of(socket);
}

bool NetNs::is_same_as(const NetNs& other) const {
  return is_same_file(look_at(fd_), look_at(other.fd_));
}

NetNs NetNs::open(const std::string& path) {
  // O_PATH first: opening a FIFO or a device to see what it is would block or have effects.
  const UniqueFd probe{::open(path.c_str(), O_PATH | O_CLOEXEC)};
  if (!probe.is_open()) {
    throw_errno("open network namespace '" + path + "'");
  }
  struct statfs file_system{};
  if (::fstatfs(probe.get(), &file_system) != 0) {
    throw_errno("look at '" + path + "'");
  }
  if (file_system.f_type != NSFS_MAGIC) {
    throw Error("open network namespace '" + path + "'", EINVAL, "it is no namespace: its file system is not nsfs");
  }
  UniqueFd fd{::open(("/proc/self/fd/" + std::to_string(probe.get())).c_str(), O_RDONLY | O_CLOEXEC)};
  if (!fd.is_open()) {
    throw_errno("open network namespace '" + path + "'");
  }
  if (::ioctl(fd.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    throw Error("open network namespace '" + path + "'", EINVAL, "it is a namespace of another type");
  }
  return NetNs{std::move(fd)};
}

bool NetNs::is_at(const std::string& path) const {
  struct stat there{};
  if (::stat(path.c_str(), &there) != 0) {
    throw_errno("look at network namespace '" + path + "'");
  }
  return is_same_file(there, look_at(fd_));
}

NetNs::Visit::Visit(const NetNs& destination) {
  auto own = open_own();
  if (is_same_file(look_at(own), look_at(destination.fd_))) {
    return;
  }
  if (::setns(destination.fd(), CLONE_NEWNET) != 0) {
    throw_errno("enter a network namespace");
  }
  origin_ = std::move(own);
}

NetNs::Visit::~Visit() {
  // Going on in the wrong namespace would do damage there. setns back into a namespace that we hold open fails for no reason we know of.
  if (origin_.is_open() && ::setns(origin_.get(), CLONE_NEWNET) != 0) {
    std::abort();
  }
}

std::vector<HeldNetNs> held_net_namespaces(const std::string& proc) {
  std::vector<HeldNetNs> found;
  std::set<std::uint64_t> cookies;
  const auto take = [&](const std::string& path, const std::string& holder) {
    try {
      auto net_ns = NetNs::open(path);
      if (cookies.insert(net_ns.cookie()).second) {
        found.push_back({std::move(net_ns), holder});
      }
    } catch (const Error&) {
      return;  // it vanished meanwhile, or is not ours to open
    }
  };
  std::set<ino_t> inodes;
  for (const auto& entry : directory_entries(proc)) {
    const auto path = proc + '/' + entry + "/ns/net";
    struct stat status{};
    if (entry.find_first_not_of("0123456789") == std::string::npos && ::stat(path.c_str(), &status) == 0 &&
        inodes.insert(status.st_ino).second) {
      take(path, "pid " + entry + " (" + read_line(proc + '/' + entry + "/comm").value_or("?") + ')');
    }
  }
  // Fields 4 and 5 are root and mount point; ` - nsfs ` follows the optional fields (proc(5)).
  const auto mounts = read_file(proc + "/self/mountinfo").value_or("");
  for (std::size_t start = 0; start < mounts.size();) {
    const auto end = std::min(mounts.find('\n', start), mounts.size());
    const auto line = std::string_view{mounts}.substr(start, end - start);
    start = end + 1;
    if (line.find(" - nsfs ") == std::string_view::npos || line.find(" net:[") == std::string_view::npos) {
      continue;
    }
    const auto root = line.find(" net:[");
    const auto mount_point = line.find(' ', root + 1) + 1;
    const std::string path{line.substr(mount_point, line.find(' ', mount_point) - mount_point)};
    take(path, path);
  }
  return found;
}

}  // namespace netlink
