#include "cni/misled.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "cni/lock.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/unique_fd.hpp"

namespace cni {

namespace {

std::string path_of(const std::string& device_key) {
  return fmt::format("{}/{}.misled", kLockDirectory, device_key);
}

}  // namespace

void remember_misled_pod(const std::string& device_key, const std::string& pod_uid) {
  if (pod_uid.empty()) {
    return;
  }
  const auto path = path_of(device_key);
  const netlink::UniqueFd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!fd.is_open()) {
    netlink::throw_errno("write " + path);
  }
  netlink::write_all(fd.get(), pod_uid + '\n', path);
}

bool is_misled(const std::string& device_key, const std::string& pod_uid) {
  return !pod_uid.empty() && netlink::read_line(path_of(device_key)) == pod_uid;
}

}  // namespace cni
