#include "netlink/rdma.hpp"

#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "netlink/device_id.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/message.hpp"

namespace netlink {

namespace {

constexpr std::string_view kUverbs = "uverbs";
constexpr std::string_view kUmad = "umad";

/// Attributes follow the netlink header at once.
Request request_of(int command, int flags = 0) {
  return {RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command), flags};
}

Request device_request(int command, std::uint32_t index) {
  auto request = request_of(command);
  request.put(RDMA_NLDEV_ATTR_DEV_INDEX, index);
  return request;
}

std::string text(std::uint32_t index) {
  return "the RDMA device with index " + std::to_string(index);
}

std::string class_directory(const std::string& name, const Roots& roots) {
  return roots.sys + "/class/" + name;
}

/// Asks for one object. The kernel says EINVAL when the device, or its port, is not in the socket's namespace.
template <typename Object>
std::optional<Object> get(Socket& rdma, Request request, const std::string& attempt,
                          std::optional<Object> (*parse)(std::span<const std::byte>)) {
  std::optional<Object> object;
  // EOPNOTSUPP: nobody makes such a char device for it.
  (void)rdma.get(std::move(request), attempt, [&](int, std::span<const std::byte> payload) { object = parse(payload); },
                 {EINVAL, ENODEV, EOPNOTSUPP});
  return object;
}

/// RDMA_NLDEV_CMD_SET. Its EINVAL for a device that is not there is no sentence for a reader.
void set(Socket& rdma, Request request, std::uint32_t index, std::string_view attempt) {
  try {
    rdma.request(std::move(request), attempt);
  } catch (const Error& error) {
    if (error.error_number() == EINVAL && !find_rdma_device(rdma, index)) {
      throw Error(attempt, ENODEV, text(index) + " is not in this namespace");
    }
    throw;
  }
}

/// `port`: umad has one for each, uverbs one for all.
std::optional<RdmaCharDevice> find_char_device(Socket& rdma, std::uint32_t index, std::string_view type,
                                               std::optional<std::uint32_t> port) {
  auto request = device_request(RDMA_NLDEV_CMD_GET_CHARDEV, index);
  request.put(RDMA_NLDEV_ATTR_CHARDEV_TYPE, std::string{type});
  if (port) {
    request.put(RDMA_NLDEV_ATTR_PORT_INDEX, *port);
  }
  return get(rdma, std::move(request), "read the " + std::string{type} + " device of " + text(index), parse_rdma_char_device);
}

/// The sibling of umadN is issmN. The kernel has a request for it, which it always refuses: that client of its has nothing of its own.
std::optional<RdmaCharDevice> find_issm(const RdmaCharDevice& umad, const Roots& roots) {
  RdmaCharDevice issm{.name = "issm" + umad.name.substr(kUmad.size()), .major = 0, .minor = 0};
  const auto numbers = read_line(class_directory("infiniband_mad", roots) + '/' + issm.name + "/dev");
  if (!numbers) {
    return std::nullopt;
  }
  const auto* const end = numbers->data() + numbers->size();
  const auto first = std::from_chars(numbers->data(), end, issm.major);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':' ||
      std::from_chars(first.ptr + 1, end, issm.minor).ec != std::errc{}) {
    return std::nullopt;
  }
  return issm;
}

std::vector<std::string> uverbs_names(const Roots& roots) {
  auto names = directory_entries(class_directory("infiniband_verbs", roots));
  std::erase_if(names, [](const std::string& name) { return !name.starts_with(kUverbs); });
  return names;
}

std::optional<std::string> rdma_name_of_uverbs(const std::string& name, const Roots& roots) {
  return read_line(class_directory("infiniband_verbs", roots) + '/' + name + "/ibdev");
}

/// Drivers give parts of a function auxiliary devices, too: `mlx5_core.rdma.0`, `mlx5_core.eth.0`, `ice.roce.0`.
bool is_function(const BusAddress& device) {
  return device.bus != "auxiliary" || device.address.find(".sf.") != std::string::npos;
}

/// `device`: the link that a class has to the device on a bus. The nearest function counts: a subfunction sits below its PF.
std::optional<BusAddress> function_above(const std::string& device, const Roots& roots) {
  std::error_code error;
  auto place = std::filesystem::canonical(device, error);
  for (; !error && place.has_relative_path(); place = place.parent_path()) {
    // The subsystem of a class device is no bus.
    BusAddress function{link_target_name(place / "subsystem").value_or(""), place.filename()};
    if (!function.bus.empty() && is_function(function) && exists(function, roots)) {
      return function;
    }
  }
  return std::nullopt;
}

std::vector<std::string> uverbs_of(const BusAddress& function, const Roots& roots) {
  auto names = uverbs_names(roots);
  std::erase_if(names, [&](const std::string& name) { return function_of_uverbs(name, roots) != function; });
  return names;
}

}  // namespace

std::optional<RdmaDevice> parse_rdma_device(std::span<const std::byte> payload) {
  const Attributes attributes{payload};
  const auto index = attributes.value<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX);
  RdmaDevice device{.index = index.value_or(0),
                    .name = attributes.text(RDMA_NLDEV_ATTR_DEV_NAME),
                    .ports = attributes.value<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX).value_or(0),
                    .node_guid = attributes.value<std::uint64_t>(RDMA_NLDEV_ATTR_NODE_GUID).value_or(0),
                    .protocol = attributes.text(RDMA_NLDEV_ATTR_DEV_PROTOCOL)};
  return index && !device.name.empty() ? std::optional{std::move(device)} : std::nullopt;
}

std::optional<RdmaPort> parse_rdma_port(std::span<const std::byte> payload) {
  const Attributes attributes{payload};
  const auto number = attributes.value<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX);
  if (!number) {
    return std::nullopt;
  }
  RdmaPort port{.number = *number,
                .state = attributes.value<std::uint8_t>(RDMA_NLDEV_ATTR_PORT_STATE).value_or(0),
                .netdev_index = std::nullopt,
                .netdev_name = attributes.text(RDMA_NLDEV_ATTR_NDEV_NAME)};
  if (const auto netdev = attributes.value<std::uint32_t>(RDMA_NLDEV_ATTR_NDEV_INDEX)) {
    port.netdev_index = static_cast<int>(*netdev);
  }
  return port;
}

std::optional<RdmaCharDevice> parse_rdma_char_device(std::span<const std::byte> payload) {
  const Attributes attributes{payload};
  const auto number = attributes.value<std::uint64_t>(RDMA_NLDEV_ATTR_CHARDEV);
  // The kernel's huge_encode_dev is the C library's encoding, for its majors of 12 and minors of 20 bits.
  RdmaCharDevice device{
      .name = attributes.text(RDMA_NLDEV_ATTR_CHARDEV_NAME), .major = major(number.value_or(0)), .minor = minor(number.value_or(0))};
  return number && !device.name.empty() ? std::optional{std::move(device)} : std::nullopt;
}

std::optional<RdmaMode> parse_rdma_mode(std::span<const std::byte> payload) {
  const auto mode = Attributes{payload}.value<std::uint8_t>(RDMA_NLDEV_SYS_ATTR_NETNS_MODE);
  if (!mode || *mode > static_cast<std::uint8_t>(RdmaMode::shared)) {
    return std::nullopt;
  }
  return static_cast<RdmaMode>(*mode);
}

std::optional<Socket> open_rdma_socket(NetNs net_ns, const Roots& roots) {
  // Opening a socket of a protocol that the kernel does not know yet makes it load the module.
  if (!inode(class_directory("infiniband", roots))) {
    return std::nullopt;
  }
  try {
    return Socket{NETLINK_RDMA, std::move(net_ns)};
  } catch (const Error& error) {
    if (error.error_number() == EPROTONOSUPPORT) {
      return std::nullopt;
    }
    throw;
  }
}

RdmaMode rdma_mode(Socket& rdma) {
  static constexpr std::string_view kAttempt = "read the network namespace mode of RDMA";
  std::optional<RdmaMode> mode;
  (void)rdma.get(request_of(RDMA_NLDEV_CMD_SYS_GET), kAttempt,
                 [&](int, std::span<const std::byte> payload) { mode = parse_rdma_mode(payload); });
  if (!mode) {
    throw Error(kAttempt, EBADMSG, "the kernel's answer names none");
  }
  return *mode;
}

std::vector<RdmaDevice> rdma_devices(Socket& rdma) {
  std::vector<RdmaDevice> devices;
  rdma.dump([] { return request_of(RDMA_NLDEV_CMD_GET, NLM_F_DUMP); }, "list the RDMA devices",
            [&](int, std::span<const std::byte> payload) {
              if (auto device = parse_rdma_device(payload)) {
                devices.push_back(std::move(*device));
              }
            },
            [&] { devices.clear(); });
  return devices;
}

std::optional<RdmaDevice> find_rdma_device(Socket& rdma, std::uint32_t index) {
  return get(rdma, device_request(RDMA_NLDEV_CMD_GET, index), "look for " + text(index), parse_rdma_device);
}

std::vector<RdmaPort> rdma_ports(Socket& rdma, const RdmaDevice& device) {
  std::vector<RdmaPort> ports;
  // One by one, because a list leaves out silently from the first port on that the driver gives no information of.
  for (std::uint32_t number = 1; number <= device.ports; ++number) {
    auto request = device_request(RDMA_NLDEV_CMD_PORT_GET, device.index);
    request.put(RDMA_NLDEV_ATTR_PORT_INDEX, number);
    auto port = get(rdma, std::move(request), "read port " + std::to_string(number) + " of " + text(device.index), parse_rdma_port);
    if (!port) {
      return {};
    }
    ports.push_back(std::move(*port));
  }
  return ports;
}

std::vector<RdmaCharDevice> rdma_char_devices(Socket& rdma, const RdmaDevice& device, const Roots& roots) {
  std::vector<RdmaCharDevice> found;
  const auto take = [&](std::optional<RdmaCharDevice> char_device) {
    if (char_device) {
      found.push_back(std::move(*char_device));
    }
  };
  // Where the module is not loaded, the kernel would load it to answer.
  if (inode(class_directory("infiniband_verbs", roots))) {
    take(find_char_device(rdma, device.index, kUverbs, std::nullopt));
  }
  if (inode(class_directory("infiniband_mad", roots))) {
    for (std::uint32_t port = 1; port <= device.ports; ++port) {
      if (auto umad = find_char_device(rdma, device.index, kUmad, port)) {
        take(find_issm(*umad, roots));
        take(std::move(umad));
      }
    }
  }
  std::ranges::sort(found, {}, &RdmaCharDevice::name);
  return found;
}

void rename_rdma_device(Socket& rdma, std::uint32_t index, const std::string& name, std::string_view attempt) {
  auto request = device_request(RDMA_NLDEV_CMD_SET, index);
  request.put(RDMA_NLDEV_ATTR_DEV_NAME, name);
  set(rdma, std::move(request), index, attempt);
}

void move_rdma_device(Socket& from, std::uint32_t index, const NetNs& to, std::string_view attempt) {
  auto request = device_request(RDMA_NLDEV_CMD_SET, index);
  request.put(RDMA_NLDEV_NET_NS_FD, static_cast<std::uint32_t>(to.fd()));
  const NetNs::Visit visit{from.net_ns()};
  set(from, std::move(request), index, attempt);
}

std::vector<std::string> rdma_names_in_host(const BusAddress& function, const Roots& roots) {
  auto names = directory_entries(bus_directory(function, roots) + "/infiniband");
  if (!names.empty()) {
    return names;
  }
  // It may hang below a part of the function.
  const auto directory = class_directory("infiniband", roots);
  names = directory_entries(directory);
  std::erase_if(names, [&](const std::string& name) { return function_above(directory + '/' + name + "/device", roots) != function; });
  return names;
}

std::optional<BusAddress> function_of_uverbs(const std::string& name, const Roots& roots) {
  return function_above(class_directory("infiniband_verbs", roots) + '/' + name + "/device", roots);
}

std::vector<std::string> rdma_names_on_node(const Roots& roots) {
  std::vector<std::string> names;
  for (const auto& uverbs : uverbs_names(roots)) {
    if (auto name = rdma_name_of_uverbs(uverbs, roots)) {
      names.push_back(std::move(*name));
    }
  }
  std::ranges::sort(names);
  return names;
}

std::vector<RdmaDevice> rdma_devices_of(Socket& rdma, const BusAddress& function, bool is_host, const Roots& roots) {
  std::vector<RdmaDevice> devices;
  if (const auto names = is_host ? rdma_names_in_host(function, roots) : std::vector<std::string>{}; !names.empty()) {
    devices = rdma_devices(rdma);
    std::erase_if(devices, [&](const RdmaDevice& device) { return std::ranges::find(names, device.name) == names.end(); });
  }
  // The host's sysfs may be another namespace's, and a name may have changed since it was read.
  if (const auto uverbs = devices.empty() ? uverbs_of(function, roots) : std::vector<std::string>{}; !uverbs.empty()) {
    devices = rdma_devices(rdma);
    std::erase_if(devices, [&](const RdmaDevice& device) {
      // By the char device, because two namespaces may have the same name.
      const auto own = find_char_device(rdma, device.index, kUverbs, std::nullopt);
      return !own || std::ranges::find(uverbs, own->name) == uverbs.end();
    });
  }
  std::ranges::sort(devices, {}, &RdmaDevice::index);
  return devices;
}

std::vector<std::string> rdma_names_anywhere(const BusAddress& function, const Roots& roots) {
  auto in_host = rdma_names_in_host(function, roots);
  std::vector<std::string> everywhere;
  for (const auto& uverbs : uverbs_of(function, roots)) {
    if (auto name = rdma_name_of_uverbs(uverbs, roots)) {
      everywhere.push_back(std::move(*name));
    }
  }
  // Without the module ib_uverbs the host's are all that can be known.
  return everywhere.size() < in_host.size() ? std::move(in_host) : std::move(everywhere);
}

}  // namespace netlink
