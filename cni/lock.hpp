#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cni/deadline.hpp"
#include "netlink/unique_fd.hpp"

namespace cni {

inline constexpr const char* kLockDirectory = "/run/fabric-nic";

/// The lock on one device: flock on a file of its own, which stays. Death releases it; only an IPAM plugin's process inherits it, so that a
/// DEL that comes after our death waits for the plugin instead of racing it. Its end releases it for everybody: what such a plugin leaves
/// running holds nothing.
class DeviceLock {
 public:
  /// Waits until `deadline` at most. `purpose` is written into the file for those who wait. Throws Error 11 naming the holder when it does
  /// not get the lock, netlink::Error when the file cannot be opened.
  [[nodiscard]] static DeviceLock acquire(const std::string& key, const std::string& purpose, const Deadline& deadline);

  DeviceLock(DeviceLock&&) noexcept = default;
  DeviceLock& operator=(DeviceLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;
  ~DeviceLock();

  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit DeviceLock(netlink::UniqueFd fd) : fd_(std::move(fd)) {}
  netlink::UniqueFd fd_;  ///< not open: moved from
};

/// The mark that a DEL leaves when it cannot get the lock: the ADD that holds it undoes itself at its end.
void leave_mark(const std::string& container_id, const std::string& interface_name);
/// Whether a mark was there; it is gone afterwards.
[[nodiscard]] bool take_mark(const std::string& container_id, const std::string& interface_name);

}  // namespace cni
