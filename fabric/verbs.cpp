#include "fabric/verbs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>

#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/unique_fd.hpp"

namespace fabric {

namespace {

constexpr std::string_view kNodes = "/dev/infiniband/";
constexpr std::string_view kClass = "/sys/class/infiniband_verbs";  // the same in every network namespace

/// Why nothing can be told of a device: one sentence.
class Problem : public std::runtime_error {
 public:
  explicit Problem(const std::string& sentence, bool is_unusable = true) : std::runtime_error(sentence), is_unusable_(is_unusable) {}

  /// Programs have it too.
  [[nodiscard]] bool is_unusable() const { return is_unusable_; }

 private:
  bool is_unusable_;
};

struct FreeList {
  void operator()(ibv_device** list) const { ibv_free_device_list(list); }
};
using DeviceList = std::unique_ptr<ibv_device*, FreeList>;

struct CloseContext {
  void operator()(ibv_context* context) const { ibv_close_device(context); }
};
using Context = std::unique_ptr<ibv_context, CloseContext>;

std::string error_text(int error_number) {
  return error_number == 0 ? "the library does not say why" : std::strerror(error_number);
}

std::string advice_on_open(int error_number) {
  switch (error_number) {
    case ENOENT:
      return "let udev make it (`udevadm trigger --subsystem-match=infiniband_verbs`)";
    case ESTALE:
      return "it is the node of something else, remove it and let udev make it (`udevadm trigger --subsystem-match=infiniband_verbs`)";
    case EPERM:
      return "the RDMA device is in another network namespace, or a device cgroup forbids it";
    case EACCES:
      return "only root may open it";
    case ENODEV:
    case ENXIO:
    case EIO:
      return "its driver is being unbound or is resetting it, look at the kernel's log";
    default:
      return "look at the kernel's log";
  }
}

Problem cannot_open(const std::string& path, int error_number) {
  return Problem{fmt::format("{} cannot be opened: {}: {}", path, error_text(error_number), advice_on_open(error_number))};
}

Problem cannot_read(std::string_view what, int error_number) {
  return Problem{fmt::format("{} cannot be read: {}: its driver is being unbound or is resetting the device, look at the kernel's log",
                             what, error_text(error_number)),
                 error_number != EOPNOTSUPP};
}

std::string node_of(std::string_view uverbs) {
  return fmt::format("{}{}", kNodes, uverbs);
}

/// errno, or 0 where it can be opened. The library itself would wait five seconds for udev when it cannot, or when the node is that of
/// another device, and forget why.
int try_to_open(std::string_view uverbs) {
  const netlink::UniqueFd node{::open(node_of(uverbs).c_str(), O_RDWR | O_CLOEXEC)};
  struct stat status{};
  if (!node.is_open() || ::fstat(node.get(), &status) != 0) {
    return errno;
  }
  const auto wanted = netlink::read_line(fmt::format("{}/{}/dev", kClass, uverbs));
  const bool is_it = S_ISCHR(status.st_mode) && fmt::format("{}:{}", major(status.st_rdev), minor(status.st_rdev)) == wanted.value_or("");
  return is_it || !wanted ? 0 : ESTALE;
}

/// Why the library does not list a device. What has a char device is in the class, in whichever namespace it is; the kernel lets only those
/// open it that are in the same. Two namespaces may have devices of one name (after Linux 6.12).
Problem not_listed(const std::string& name) {
  const auto class_entries = netlink::directory_entries(std::string{kClass});
  if (class_entries.empty()) {
    return Problem{"the kernel offers no RDMA device to programs: load the module ib_uverbs and the RDMA driver of the device"};
  }
  std::optional<Problem> closed;
  for (const auto& uverbs : class_entries) {
    if (netlink::read_line(fmt::format("{}/{}/ibdev", kClass, uverbs)) != name) {
      continue;
    }
    const auto node = node_of(uverbs);
    const auto error_number = try_to_open(uverbs);
    if (error_number == 0) {
      return Problem{"libibverbs has no provider for its driver: a fabric-nic that was built with a newer libibverbs may have one", false};
    }
    closed = error_number == EPERM
                 ? Problem{fmt::format("it is not in this network namespace, but in another one ({} refuses to be opened)", node)}
                 : cannot_open(node, error_number);
  }
  return closed.value_or(
      Problem{"there is no RDMA device of that name: it was renamed, or its driver was unbound; `rdma dev show` lists them"});
}

std::uint32_t bytes_of(ibv_mtu mtu) {
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128U << static_cast<unsigned>(mtu) : 0;
}

PortState state_of(ibv_port_state state) {
  return state >= IBV_PORT_DOWN && state <= IBV_PORT_ACTIVE ? static_cast<PortState>(state) : PortState::unknown;
}

/// All ports' tables at once. Throws Problem.
std::vector<ibv_gid_entry> read_gids(ibv_context& context, std::size_t size) {
  std::vector<ibv_gid_entry> entries(size);
  if (size == 0) {
    return entries;
  }
  const auto count = ibv_query_gid_table(&context, entries.data(), entries.size(), 0);
  if (count < 0) {
    throw cannot_read("the GID table", static_cast<int>(-count));
  }
  entries.resize(static_cast<std::size_t>(count));
  return entries;
}

/// Throws Problem.
std::vector<Port> read_ports(ibv_context& context) {
  ibv_device_attr device{};
  if (const auto error_number = ibv_query_device(&context, &device); error_number != 0) {
    throw cannot_read("the device", error_number);
  }
  std::vector<Port> ports;
  std::size_t table_size = 0;
  for (unsigned number = 1; number <= device.phys_port_cnt; ++number) {
    ibv_port_attr attributes{};
    if (const auto error_number = ibv_query_port(&context, static_cast<std::uint8_t>(number), &attributes); error_number != 0) {
      throw cannot_read(fmt::format("port {}", number), error_number);
    }
    table_size += static_cast<std::size_t>(std::max(attributes.gid_tbl_len, 0));
    ports.push_back({.number = number,
                     .state = state_of(attributes.state),
                     .is_ethernet = attributes.link_layer == IBV_LINK_LAYER_ETHERNET,
                     .active_mtu = bytes_of(attributes.active_mtu),
                     .max_mtu = bytes_of(attributes.max_mtu),
                     .gids = {}});
  }
  for (const auto& entry : read_gids(context, table_size)) {
    const auto port = std::ranges::find(ports, entry.port_num, &Port::number);
    if (port == ports.end() || entry.gid_type > IBV_GID_TYPE_ROCE_V2) {
      continue;
    }
    auto& gid = port->gids.emplace_back();
    gid.index = entry.gid_index;
    gid.type = static_cast<GidType>(entry.gid_type);
    std::ranges::copy(entry.gid.raw, gid.bytes.begin());
    gid.netdev_index = static_cast<int>(entry.ndev_ifindex);
  }
  return ports;
}

/// Throws Problem.
std::vector<Port> read_device(std::span<ibv_device* const> list, const std::string& name) {
  const auto found = std::ranges::find_if(list, [&](ibv_device* device) { return ibv_get_device_name(device) == name; });
  if (found == list.end()) {
    throw not_listed(name);
  }
  const std::string_view uverbs{static_cast<const char*>((*found)->dev_name)};
  const auto node = node_of(uverbs);
  if (const auto error_number = try_to_open(uverbs); error_number != 0) {
    throw cannot_open(node, error_number);
  }
  errno = 0;
  const Context context{ibv_open_device(*found)};
  if (!context) {
    throw cannot_open(node, errno);
  }
  return read_ports(*context);
}

}  // namespace

std::vector<Device> look(const std::vector<std::string>& names) {
  int count = 0;
  const DeviceList list{ibv_get_device_list(&count)};
  const std::span<ibv_device* const> listed{list.get(), list ? static_cast<std::size_t>(count) : 0};
  std::vector<Device> devices;
  for (const auto& name : names) {
    auto& device = devices.emplace_back(Device{.name = name, .problem = {}, .is_unusable = false, .ports = {}});
    try {
      device.ports = read_device(listed, name);
    } catch (const Problem& problem) {
      device.problem = problem.what();
      device.is_unusable = problem.is_unusable();
    } catch (const netlink::Error& error) {
      device.problem = error.what();
    }
  }
  return devices;
}

}  // namespace fabric
