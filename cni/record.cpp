#include "cni/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "cni/error.hpp"
#include "cni/guid.hpp"
#include "cni/json.hpp"

namespace cni {

namespace {

constexpr int kFormat = 3;
constexpr int kFormatWithoutRdma = 2;
constexpr int kFormatWithoutVfs = 1;

std::string hardware_text(const netlink::HardwareAddress& address) {
  return address.text();
}

netlink::HardwareAddress read_hardware(const std::string& text) {
  if (text.empty()) {
    return {};
  }
  auto address = netlink::HardwareAddress::parse(text);
  if (!address) {
    throw Error(Code::decode_failure, "'" + text + "' is no MAC");
  }
  return *address;
}

netlink::IpAddress read_ip(const std::string& text) {
  auto address = netlink::IpAddress::parse(text);
  if (!address) {
    throw Error(Code::decode_failure, "'" + text + "' is no IP address");
  }
  return *address;
}

netlink::IpPrefix read_prefix(const std::string& text) {
  auto prefix = netlink::IpPrefix::parse(text);
  if (!prefix) {
    throw Error(Code::decode_failure, "'" + text + "' is no address with a prefix length");
  }
  return *prefix;
}

/// The library reads true, 1.5 and 4294967297 as numbers of any type.
template <typename T>
T number(const Json& value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() ? !std::in_range<T>(value.get<std::uint64_t>()) : !std::in_range<T>(value.get<std::int64_t>()))) {
    throw Error(Code::decode_failure, "the record has a wrong number: " + value.dump());
  }
  return value.get<T>();
}

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// What `read` makes of a value; nothing of null.
template <typename Read>
auto read_unless_null(const Json& json, Read read) {
  return json.is_null() ? std::nullopt : std::optional{read(json)};
}

template <typename T>
std::optional<T> read_optional(const Json& value) {
  return read_unless_null(value, number<T>);
}

Json ip_json(const std::optional<netlink::IpAddress>& address) {
  return address ? Json(address->text()) : Json(nullptr);
}

std::optional<netlink::IpAddress> read_optional_ip(const Json& value) {
  return read_unless_null(value, [](const Json& text) { return read_ip(text.get<std::string>()); });
}

Json print(const netlink::InterfaceAddress& address) {
  return {{"prefix", address.prefix.text()},
          {"peer", ip_json(address.peer)},
          {"broadcast", ip_json(address.broadcast)},
          {"scope", address.scope},
          {"flags", address.flags},
          {"label", address.label},
          {"metric", optional_json(address.metric)}};
}

netlink::InterfaceAddress read_interface_address(const Json& json) {
  return {.prefix = read_prefix(json.at("prefix")),
          .peer = read_optional_ip(json.at("peer")),
          .broadcast = read_optional_ip(json.at("broadcast")),
          .scope = number<std::uint8_t>(json.at("scope")),
          .flags = number<std::uint32_t>(json.at("flags")),
          .label = json.at("label"),
          .metric = read_optional<std::uint32_t>(json.at("metric"))};
}

Json print(const netlink::Route& route) {
  return {{"destination", route.destination.text()},
          {"gateway", ip_json(route.gateway)},
          {"source", ip_json(route.source)},
          {"table", route.table},
          {"priority", route.priority},
          {"scope", route.scope},
          {"protocol", route.protocol},
          {"onLink", route.on_link},
          {"mtu", optional_json(route.mtu)},
          {"advmss", optional_json(route.advmss)}};
}

netlink::Route read_route(const Json& json) {
  return {.destination = read_prefix(json.at("destination")),
          .gateway = read_optional_ip(json.at("gateway")),
          .source = read_optional_ip(json.at("source")),
          .table = number<std::uint32_t>(json.at("table")),
          .priority = number<std::uint32_t>(json.at("priority")),
          .scope = number<std::uint8_t>(json.at("scope")),
          .protocol = number<std::uint8_t>(json.at("protocol")),
          .on_link = json.at("onLink"),
          .mtu = read_optional<std::uint32_t>(json.at("mtu")),
          .advmss = read_optional<std::uint32_t>(json.at("advmss"))};
}

/// `1 0 -1`: a JSON value for each of two hundred numbers would be most of what a record costs.
std::string numbers_text(const std::vector<std::int32_t>& numbers) {
  std::string text;
  for (const auto number : numbers) {
    text += text.empty() ? "" : " ";
    text += std::to_string(number);
  }
  return text;
}

std::vector<std::int32_t> read_numbers(const std::string& text) {
  std::vector<std::int32_t> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    const auto [next, error] = std::from_chars(at, end, numbers.emplace_back());
    if (error != std::errc{} || (next != end && (*next != ' ' || next + 1 == end))) {
      throw Error(Code::decode_failure, "the record has wrong numbers: '" + text + "'");
    }
    at = next == end ? end : next + 1;
  }
  return numbers;
}

Json print(const netlink::VfSettings& vf) {
  Json json;
  json["mac"] = vf.mac ? Json(hardware_text(*vf.mac)) : Json(nullptr);
  json["vlan"] = vf.vlan ? Json{{"id", vf.vlan->id}, {"qos", vf.vlan->qos}, {"protocol", vf.vlan->protocol}} : Json(nullptr);
  json["rates"] = vf.rates ? Json{{"minimum", vf.rates->minimum}, {"maximum", vf.rates->maximum}} : Json(nullptr);
  json["spoofCheck"] = optional_json(vf.spoof_check);
  json["trust"] = optional_json(vf.trust);
  json["linkState"] = vf.link_state ? Json(static_cast<std::uint32_t>(*vf.link_state)) : Json(nullptr);
  json["nodeGuid"] = vf.node_guid ? Json(guid_text(*vf.node_guid)) : Json(nullptr);
  json["portGuid"] = vf.port_guid ? Json(guid_text(*vf.port_guid)) : Json(nullptr);
  return json;
}

bool read_bool(const Json& json) {
  return json.get<bool>();
}

Guid read_guid_text(const Json& json) {
  const auto text = json.get<std::string>();
  const auto guid = parse_guid(text);
  if (!guid) {
    throw Error(Code::decode_failure, "'" + text + "' is no GUID");
  }
  return *guid;
}

netlink::VfSettings read_vf_settings(const Json& json, int format) {
  netlink::VfSettings vf;
  vf.mac = read_unless_null(json.at("mac"), [](const Json& value) { return read_hardware(value.get<std::string>()); });
  vf.vlan = read_unless_null(json.at("vlan"), [](const Json& value) {
    return netlink::VfVlan{.id = number<std::uint16_t>(value.at("id")),
                           .qos = number<std::uint8_t>(value.at("qos")),
                           .protocol = number<std::uint16_t>(value.at("protocol"))};
  });
  vf.rates = read_unless_null(json.at("rates"), [](const Json& value) {
    return netlink::VfRates{.minimum = number<std::uint32_t>(value.at("minimum")), .maximum = number<std::uint32_t>(value.at("maximum"))};
  });
  vf.spoof_check = read_unless_null(json.at("spoofCheck"), read_bool);
  vf.trust = read_unless_null(json.at("trust"), read_bool);
  vf.link_state = read_unless_null(json.at("linkState"),
                                   [](const Json& value) { return static_cast<netlink::VfLinkState>(number<std::uint32_t>(value)); });
  if (format != kFormatWithoutRdma) {
    vf.node_guid = read_unless_null(json.at("nodeGuid"), read_guid_text);
    vf.port_guid = read_unless_null(json.at("portGuid"), read_guid_text);
  }
  return vf;
}

Json print(const std::vector<RdmaState>& devices) {
  Json json = Json::array();
  for (const auto& device : devices) {
    json.push_back({{"index", device.index},
                    {"name", device.name},
                    {"side", device.side == Side::pod ? "pod" : "host"},
                    {"infiniband", device.is_infiniband}});
  }
  return json;
}

Side read_side(const std::string& word) {
  if (word != "pod" && word != "host") {
    throw Error(Code::decode_failure, "'" + word + "' is neither host nor pod");
  }
  return word == "pod" ? Side::pod : Side::host;
}

std::vector<RdmaState> read_rdma_states(const Json& json) {
  std::vector<RdmaState> devices;
  for (const auto& device : json) {
    devices.push_back({.index = number<std::uint32_t>(device.at("index")),
                       .name = device.at("name"),
                       .side = read_side(device.at("side")),
                       .is_infiniband = device.at("infiniband").get<bool>()});
  }
  return devices;
}

constexpr std::array<std::string_view, 4> kUses{"none", "left", "moved", "shared"};

Json print(const RdmaAttachment& rdma) {
  return {{"use", kUses.at(static_cast<std::size_t>(rdma.use))},
          {"required", rdma.is_required},
          {"mtuRequired", rdma.is_mtu_required},
          {"devices", print(rdma.devices)}};
}

RdmaAttachment read_rdma_attachment(const Json& json) {
  const auto word = json.at("use").get<std::string>();
  const auto* const use = std::ranges::find(kUses, word);
  if (use == kUses.end()) {
    throw Error(Code::decode_failure, "'" + word + "' is no use of RDMA devices");
  }
  return {.use = static_cast<RdmaUse>(use - kUses.begin()),
          .is_required = read_bool(json.at("required")),
          .is_mtu_required = read_bool(json.at("mtuRequired")),
          .devices = read_rdma_states(json.at("devices"))};
}

Json print(const State& state) {
  // Each value in its place at once: the library's lists in braces copy what they hold, and this is most of a record.
  Json json;
  json["index"] = state.index;
  json["name"] = state.name;
  json["altnames"] = state.altnames;
  json["alias"] = state.alias;
  json["mtu"] = optional_json(state.mtu);
  json["mac"] = hardware_text(state.mac);
  json["up"] = state.up;
  json["promisc"] = state.promisc;
  json["allmulti"] = state.allmulti;
  json["txQueueLength"] = optional_json(state.tx_queue_length);
  json["sysctls"]["ipv4"] = numbers_text(state.sysctls.ipv4);
  json["sysctls"]["ipv6"] = numbers_text(state.sysctls.ipv6);
  json["sysctls"]["others"] = state.sysctls.others;
  json["xdp"] = Json::array();
  json["addresses"] = Json::array();
  json["routes"] = Json::array();
  for (const auto& program : state.xdp) {
    json["xdp"].push_back({{"mode", program.mode}, {"id", program.id}});
  }
  for (const auto& address : state.addresses) {
    json["addresses"].push_back(print(address));
  }
  for (const auto& route : state.routes) {
    json["routes"].push_back(print(route));
  }
  json["arp"] = optional_json(state.arp);
  json["multicast"] = optional_json(state.multicast);
  json["vf"] = state.vf ? print(*state.vf) : Json(nullptr);
  json["rdma"] = print(state.rdma);
  return json;
}

netlink::Sysctls read_sysctls(const Json& json) {
  return {.ipv4 = read_numbers(json.at("ipv4")),
          .ipv6 = read_numbers(json.at("ipv6")),
          .others = json.at("others").get<std::map<std::string, std::string>>()};
}

State read_state(const Json& json) {
  State state;
  state.index = number<int>(json.at("index"));
  state.name = json.at("name");
  state.altnames = json.at("altnames").get<std::vector<std::string>>();
  state.alias = json.at("alias");
  state.mtu = read_optional<std::uint32_t>(json.at("mtu"));
  state.mac = read_hardware(json.at("mac"));
  state.up = json.at("up");
  state.promisc = json.at("promisc");
  state.allmulti = json.at("allmulti");
  state.tx_queue_length = read_optional<std::uint32_t>(json.at("txQueueLength"));
  state.sysctls = read_sysctls(json.at("sysctls"));
  for (const auto& program : json.at("xdp")) {
    state.xdp.push_back({.mode = number<std::uint8_t>(program.at("mode")), .id = number<std::uint32_t>(program.at("id"))});
  }
  for (const auto& address : json.at("addresses")) {
    state.addresses.push_back(read_interface_address(address));
  }
  for (const auto& route : json.at("routes")) {
    state.routes.push_back(read_route(route));
  }
  return state;
}

Json print(const netlink::DeviceId& device) {
  Json macs = Json::array();
  for (const auto& address : device.addresses) {
    macs.push_back(hardware_text(address));
  }
  return {{"macs", std::move(macs)},
          {"bus", device.parent ? device.parent->bus : ""},
          {"address", device.parent ? device.parent->address : ""},
          {"permanentMac", hardware_text(device.permanent_address)},
          {"hostIndex", device.host_index},
          {"podIndex", device.pod_index},
          {"homeIndex", device.home_index},
          {"kind", device.kind}};
}

netlink::DeviceId read_device(const Json& json) {
  netlink::DeviceId device;
  if (const auto address = json.at("address").get<std::string>(); !address.empty()) {
    device.parent = netlink::BusAddress{json.at("bus"), address};
  }
  device.permanent_address = read_hardware(json.at("permanentMac"));
  device.host_index = number<int>(json.at("hostIndex"));
  device.pod_index = number<int>(json.at("podIndex"));
  device.home_index = number<int>(json.at("homeIndex"));
  device.kind = json.at("kind");
  for (const auto& mac : json.at("macs")) {
    device.addresses.push_back(read_hardware(mac.get<std::string>()));
  }
  return device;
}

Json print(const Owner& owner) {
  return {{"network", owner.network}, {"containerID", owner.container_id}, {"interface", owner.interface_name},
          {"pod", owner.pod},         {"netns", owner.net_ns_path},        {"netnsCookie", owner.net_ns_cookie},
          {"since", owner.since}};
}

Owner read_owner(const Json& json) {
  return {.network = json.at("network"),
          .container_id = json.at("containerID"),
          .interface_name = json.at("interface"),
          .pod = json.at("pod"),
          .net_ns_path = json.at("netns"),
          .net_ns_cookie = number<std::uint64_t>(json.at("netnsCookie")),
          .since = json.at("since")};
}

Json print(const IpamRequest& request) {
  return {{"type", request.type},
          {"containerID", request.container_id},
          {"interface", request.interface_name},
          {"netns", request.net_ns_path},
          {"args", request.args},
          {"path", request.path},
          {"stdin", request.input}};
}

IpamRequest read_ipam(const Json& json) {
  return {.type = json.at("type"),
          .container_id = json.at("containerID"),
          .interface_name = json.at("interface"),
          .net_ns_path = json.at("netns"),
          .args = json.at("args"),
          .path = json.at("path"),
          .input = json.at("stdin")};
}

/// The library's exceptions name the key; ours have a code besides.
template <typename Function>
auto reading(Function&& function) {
  try {
    return function();
  } catch (const Json::exception& error) {
    throw Error(Code::decode_failure, std::string{"the record cannot be read: "} + error.what());
  }
}

/// A name that came back changed would be worse than none: what JSON cannot hold is refused.
std::string text_of(const Json& json) {
  try {
    return json.dump() + '\n';
  } catch (const Json::exception&) {
    throw Error(Code::device_cannot_be_taken, "a name, alias or variable that has to be recorded is no UTF-8 text",
                "Rename the interface, or correct CNI_ARGS.");
  }
}

}  // namespace

std::string Owner::text() const {
  return fmt::format("{}container '{}', interface '{}' of network '{}'{}", pod.empty() ? "" : "pod '" + pod + "', ", container_id,
                     interface_name, network, since.empty() ? "" : ", since " + since);
}

std::string print_record(const Record& record) {
  Json json;
  json["format"] = kFormat;
  json["owner"] = print(record.owner);
  json["home"] = record.home_cookie;
  json["device"] = print(record.device);
  json["incarnation"] = {{"bootID", record.incarnation.boot_id},
                         {"deviceInode", record.incarnation.device_inode},
                         {"driverInode", record.incarnation.driver_inode}};
  json["before"] = print(record.before);
  json["askedVf"] = print(record.asked_vf);
  json["rdma"] = print(record.rdma);
  json["userspaceDriver"] = record.userspace_driver;
  json["rdmaOnly"] = record.is_rdma_only;
  json["boundDriver"] = record.bound_driver;
  json["deviceInfoFile"] = record.device_info_file;
  json["ipam"] = record.ipam ? print(*record.ipam) : Json(nullptr);
  json["completed"] = record.completed;
  json["result"] = record.result;
  return text_of(json);
}

Record parse_record(std::string_view text) {
  return reading([&] {
    const auto json = Json::parse(text);
    const int format = number<int>(json.at("format"));
    if (format < kFormatWithoutVfs || format > kFormat) {
      throw Error(Code::decode_failure,
                  fmt::format("the record has format {}, and this release knows the formats {} to {}", format, kFormatWithoutVfs, kFormat));
    }
    const auto& incarnation = json.at("incarnation");
    Record record;
    record.owner = read_owner(json.at("owner"));
    record.home_cookie = number<std::uint64_t>(json.at("home"));
    record.device = read_device(json.at("device"));
    record.incarnation = {.boot_id = incarnation.at("bootID"),
                          .device_inode = number<std::uint64_t>(incarnation.at("deviceInode")),
                          .driver_inode = number<std::uint64_t>(incarnation.at("driverInode"))};
    record.before = read_state(json.at("before"));
    if (format != kFormatWithoutVfs) {
      record.before.arp = read_unless_null(json.at("before").at("arp"), read_bool);
      record.before.multicast = read_unless_null(json.at("before").at("multicast"), read_bool);
      record.before.vf = read_unless_null(json.at("before").at("vf"), [&](const Json& vf) { return read_vf_settings(vf, format); });
      record.asked_vf = read_vf_settings(json.at("askedVf"), format);
      record.userspace_driver = json.at("userspaceDriver");
      record.device_info_file = json.at("deviceInfoFile");
    }
    if (format > kFormatWithoutRdma) {
      record.before.rdma = read_rdma_states(json.at("before").at("rdma"));
      record.rdma = read_rdma_attachment(json.at("rdma"));
      record.is_rdma_only = read_bool(json.at("rdmaOnly"));
      record.bound_driver = json.at("boundDriver");
    }
    record.ipam = read_unless_null(json.at("ipam"), read_ipam);
    record.completed = json.at("completed");
    record.result = json.at("result");
    return record;
  });
}

std::string print_ipam_request(const IpamRequest& request) {
  return text_of(print(request));
}

IpamRequest parse_ipam_request(std::string_view text) {
  return reading([&] { return read_ipam(Json::parse(text)); });
}

}  // namespace cni
