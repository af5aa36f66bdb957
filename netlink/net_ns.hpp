#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netlink/unique_fd.hpp"

namespace netlink {

/// An open network namespace. It keeps the namespace alive.
class NetNs {
 public:
  /// The namespace of the calling thread.
  [[nodiscard]] static NetNs current();
  /// Opens a path. Throws Error: ENOENT and its like when nothing is there, EINVAL when it is not a network namespace
  /// (a plain file is what a lost bind mount leaves behind).
  [[nodiscard]] static NetNs open(const std::string& path);

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Another descriptor of the same namespace. Throws Error.
  [[nodiscard]] NetNs again() const;
  /// SO_NETNS_COOKIE: unique until the next boot and never used again, unlike the inode (Linux 5.14).
  /// Throws Error with ENOPROTOOPT on an older kernel.
  [[nodiscard]] std::uint64_t cookie() const;
  /// Spares `cookie` a visit. The socket was opened in this namespace.
  void learn_cookie(int socket);
  [[nodiscard]] bool is_same_as(const NetNs& other) const;
  /// Whether the path leads to this namespace. Throws Error when it leads nowhere.
  [[nodiscard]] bool is_at(const std::string& path) const;

  /// The calling thread is inside the namespace for the life of the object: the one place where setns is called. Where the thread is
  /// already, it stays.
  class Visit {
   public:
    explicit Visit(const NetNs& destination);
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    Visit(Visit&&) = delete;
    Visit& operator=(Visit&&) = delete;
    ~Visit();

   private:
    UniqueFd origin_;  ///< not open: the thread was there already
  };

 private:
  explicit NetNs(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  mutable std::uint64_t cookie_ = 0;  ///< 0: not read yet
};

/// A namespace somebody holds, and how it was found.
struct HeldNetNs {
  NetNs net_ns;
  std::string holder;  ///< `pid 1234 (name)`, or the path of a bind mount
};

/// Every network namespace that a process or a bind mount visible here holds, each once, processes first.
/// `proc` is the mount point of procfs. What vanishes while we look is left out.
[[nodiscard]] std::vector<HeldNetNs> held_net_namespaces(const std::string& proc);

}  // namespace netlink
