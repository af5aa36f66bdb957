#include "cni/device_info.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "cni/error.hpp"
#include "cni/json.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/unique_fd.hpp"
#include "netlink/vf.hpp"

namespace cni {

namespace {

constexpr std::string_view kAlias = "/var";
constexpr std::string_view kRoot = "/run";
constexpr const char* kVersion = "1.1.0";
constexpr mode_t kDirectoryMode = 0755;
constexpr mode_t kFileMode = 0644;  // as everybody's who writes there: nothing in it is secret
constexpr std::size_t kLongestName = 255;

/// A file and the directory in which it is, or is to be. No component of the way may be a link: it is the tenant's to say, and root who
/// goes.
struct Place {
  netlink::UniqueFd directory;  ///< not open: it is not there
  std::string name;
};

Place open_place(const std::string& path, bool create) {
  netlink::UniqueFd directory{::open(std::string{kRoot}.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!directory.is_open()) {
    netlink::throw_errno("open the directory of " + path);
  }
  const auto relative = std::filesystem::path{path}.lexically_relative(kRoot);
  for (const auto& component : relative.parent_path()) {
    if (create && ::mkdirat(directory.get(), component.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
      netlink::throw_errno("make the directory of " + path);
    }
    const int fd = ::openat(directory.get(), component.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (create || errno != ENOENT)) {
      netlink::throw_errno("open the directory of " + path + ", '" + component.string() + "'");
    }
    directory = netlink::UniqueFd{fd};
    if (fd < 0) {
      break;
    }
  }
  return {.directory = std::move(directory), .name = relative.filename().string()};
}

/// A name that no configuration can ask for.
std::string temporary_name(const std::string& name) {
  return '.' + name.substr(0, kLongestName - 1);
}

std::string read_existing(const Place& place, const std::string& path) {
  const netlink::UniqueFd fd{::openat(place.directory.get(), place.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat status{};
  if (!fd.is_open() && errno == ENOENT) {
    return {};
  }
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    netlink::throw_errno("read " + path);
  }
  if (!S_ISREG(status.st_mode)) {
    throw netlink::Error("read " + path, EINVAL, "it is not a regular file");
  }
  return netlink::read_file("/proc/self/fd/" + std::to_string(fd.get())).value_or("");
}

void replace(const Place& place, const std::string& path, std::string_view content) {
  const auto temporary = temporary_name(place.name);
  const int directory = place.directory.get();
  ::unlinkat(directory, temporary.c_str(), 0);  // of one that died here
  const netlink::UniqueFd fd{::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode)};
  if (!fd.is_open()) {
    netlink::throw_errno("write " + path);
  }
  try {
    netlink::write_all(fd.get(), content, path);
    // Whatever the umask of the runtime is.
    if (::fchmod(fd.get(), kFileMode) != 0 || ::renameat(directory, temporary.c_str(), directory, place.name.c_str()) != 0) {
      netlink::throw_errno("write " + path);
    }
  } catch (const netlink::Error&) {
    ::unlinkat(directory, temporary.c_str(), 0);
    throw;
  }
}

Json parse_existing(std::string_view text) {
  try {
    auto json = parse_json(text);
    return json.is_object() ? json : Json::object();
  } catch (const Error&) {
    return Json::object();
  }
}

}  // namespace

bool is_device_info_path(std::string_view path) {
  const auto canonical = canonical_device_info_path(path);
  std::string_view name{canonical};
  if (!name.starts_with(kDeviceInfoDirectory)) {
    return false;
  }
  name.remove_prefix(kDeviceInfoDirectory.size());
  if (name.starts_with("cni/")) {
    name.remove_prefix(std::string_view{"cni/"}.size());
  } else if (name == "cni" || name == "dp") {
    return false;  // where Multus has those of pods, and device plugins have theirs
  }
  return !name.empty() && !name.starts_with('.') && name.size() <= kLongestName - 1 && std::ranges::none_of(name, [](char letter) {
    return letter == '/' || static_cast<unsigned char>(letter) < ' ' || letter == '\x7f';
  });
}

std::string canonical_device_info_path(std::string_view path) {
  const bool is_alias = path.starts_with(kAlias) && path.substr(kAlias.size()).starts_with(kDeviceInfoDirectory);
  return std::string{is_alias ? path.substr(kAlias.size()) : path};
}

std::optional<DeviceInfo> device_info_of(const Record& record, const netlink::Roots& roots) {
  const auto& parent = record.device.parent;
  const auto function = parent ? netlink::pci_function(*parent, roots) : std::nullopt;
  if (!function) {
    return std::nullopt;
  }
  const auto id = netlink::find_vf_id(*function, roots);
  DeviceInfo info{.pci_address = function->address, .pf_pci_address = id ? id->physical_function.address : "", .rdma_device = {}};
  if (record.rdma.use == RdmaUse::moved || record.rdma.use == RdmaUse::shared) {
    for (const auto& device : record.rdma.devices) {
      info.rdma_device += (info.rdma_device.empty() ? "" : ",") + device.name;
    }
  }
  return info;
}

std::optional<std::string> merge_device_info(std::string_view existing, const DeviceInfo& info) {
  auto json = existing.empty() ? Json::object() : parse_existing(existing);
  if (json.value("type", Json("pci")) != "pci") {
    return std::nullopt;
  }
  json["type"] = "pci";
  json["version"] = kVersion;
  auto& pci = json["pci"];
  if (!pci.is_object()) {
    pci = Json::object();
  }
  pci["pci-address"] = info.pci_address;
  if (!info.pf_pci_address.empty()) {
    pci["pf-pci-address"] = info.pf_pci_address;
  }
  if (!info.rdma_device.empty()) {
    pci["rdma-device"] = info.rdma_device;
  }
  return print_json(json);
}

bool write_device_info(const std::string& path, const DeviceInfo& info) {
  const auto place = open_place(path, true);
  const auto content = merge_device_info(read_existing(place, path), info);
  if (content) {
    replace(place, path, *content);
  }
  return content.has_value();
}

void remove_device_info(const std::string& path) {
  const auto place = open_place(path, false);
  if (!place.directory.is_open()) {
    return;
  }
  for (const auto& name : {temporary_name(place.name), place.name}) {
    if (::unlinkat(place.directory.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
      netlink::throw_errno("remove " + path);
    }
  }
}

}  // namespace cni
