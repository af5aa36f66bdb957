#include "fabric/port.hpp"

// Without JSON_NO_IO the library brings iostream into the static binary: 1 MB for nothing.
#define JSON_NO_IO 1
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

namespace fabric {

namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::array kStates{PortState::unknown, PortState::down, PortState::init, PortState::armed, PortState::active};
constexpr std::array<std::pair<GidType, std::string_view>, 3> kGidTypes{
    {{GidType::infiniband, "IB"}, {GidType::roce_v1, "RoCE v1"}, {GidType::roce_v2, "RoCE v2"}}};
constexpr std::size_t kMappedPrefix = 12;

[[noreturn]] void refuse(std::string_view what) {
  throw std::invalid_argument(fmt::format("what was told of RDMA devices has no valid {}", what));
}

/// Throws unless the value is an object with that many members: each that is wanted is then asked for by name.
void require_object(const Json& json, std::size_t members, std::string_view what) {
  if (!json.is_object() || json.size() != members) {
    refuse(what);
  }
}

const Json& member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    refuse(key);
  }
  return *found;
}

std::string text_member(const Json& object, const char* key) {
  const auto& value = member(object, key);
  if (!value.is_string()) {
    refuse(key);
  }
  return value.get<std::string>();
}

bool boolean_member(const Json& object, const char* key) {
  const auto& value = member(object, key);
  if (!value.is_boolean()) {
    refuse(key);
  }
  return value.get<bool>();
}

template <typename Number>
Number number_member(const Json& object, const char* key) {
  const auto& value = member(object, key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) {
    refuse(key);
  }
  return static_cast<Number>(value.get<std::uint64_t>());
}

const Json& list_member(const Json& object, const char* key) {
  const auto& value = member(object, key);
  if (!value.is_array()) {
    refuse(key);
  }
  return value;
}

std::string_view text(GidType type) {
  return std::ranges::find(kGidTypes, type, &std::pair<GidType, std::string_view>::first)->second;
}

/// As an IPv6 address is written, also where it stands for one of IPv4.
std::string text(const std::array<std::uint8_t, 16>& gid) {
  return netlink::IpAddress{netlink::Family::v6, std::as_bytes(std::span{gid})}.text();
}

OrderedJson to_json(const Port& port) {
  auto gids = OrderedJson::array();
  for (const auto& gid : port.gids) {
    gids.push_back(
        OrderedJson{{"index", gid.index}, {"type", text(gid.type)}, {"gid", text(gid.bytes)}, {"netdevIndex", gid.netdev_index}});
  }
  return {{"number", port.number},        {"state", text(port.state)}, {"ethernet", port.is_ethernet},
          {"activeMtu", port.active_mtu}, {"maxMtu", port.max_mtu},    {"gids", std::move(gids)}};
}

Gid read_gid(const Json& json) {
  require_object(json, 4, "gid");
  Gid gid;
  gid.index = number_member<std::uint32_t>(json, "index");
  gid.netdev_index = number_member<int>(json, "netdevIndex");
  const auto type_name = text_member(json, "type");
  const auto* type = std::ranges::find(kGidTypes, type_name, &std::pair<GidType, std::string_view>::second);
  const auto address = netlink::IpAddress::parse(text_member(json, "gid"));
  if (type == kGidTypes.end() || !address || address->family() != netlink::Family::v6) {
    refuse("gid");
  }
  gid.type = type->first;
  std::ranges::copy(address->bytes(), std::as_writable_bytes(std::span{gid.bytes}).begin());
  return gid;
}

Port read_port(const Json& json) {
  require_object(json, 6, "port");
  Port port;
  port.number = number_member<std::uint32_t>(json, "number");
  const auto state_name = text_member(json, "state");
  const auto* state = std::ranges::find(kStates, state_name, [](PortState each) { return text(each); });
  if (state == kStates.end()) {
    refuse("state");
  }
  port.state = *state;
  port.is_ethernet = boolean_member(json, "ethernet");
  port.active_mtu = number_member<std::uint32_t>(json, "activeMtu");
  port.max_mtu = number_member<std::uint32_t>(json, "maxMtu");
  for (const auto& gid : list_member(json, "gids")) {
    port.gids.push_back(read_gid(gid));
  }
  return port;
}

}  // namespace

std::string_view text(PortState state) {
  switch (state) {
    case PortState::down:
      return "DOWN";
    case PortState::init:
      return "INIT";
    case PortState::armed:
      return "ARMED";
    case PortState::active:
      return "ACTIVE";
    case PortState::unknown:
      break;
  }
  return "UNKNOWN";
}

netlink::IpAddress Gid::address() const {
  static constexpr std::array<std::uint8_t, kMappedPrefix> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  const auto all = std::as_bytes(std::span{bytes});
  if (std::ranges::equal(std::span{bytes}.first(kMappedPrefix), kMapped)) {
    return {netlink::Family::v4, all.subspan(kMappedPrefix)};
  }
  return {netlink::Family::v6, all};
}

std::string print(const std::vector<Device>& devices) {
  auto out = OrderedJson::array();
  for (const auto& device : devices) {
    auto ports = OrderedJson::array();
    for (const auto& port : device.ports) {
      ports.push_back(to_json(port));
    }
    out.push_back(
        OrderedJson{{"name", device.name}, {"problem", device.problem}, {"unusable", device.is_unusable}, {"ports", std::move(ports)}});
  }
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

std::vector<Device> parse(std::string_view text) {
  const auto json = Json::parse(text);
  if (!json.is_array()) {
    refuse("list");
  }
  std::vector<Device> devices;
  for (const auto& each : json) {
    require_object(each, 4, "device");
    Device device{.name = text_member(each, "name"),
                  .problem = text_member(each, "problem"),
                  .is_unusable = boolean_member(each, "unusable"),
                  .ports = {}};
    for (const auto& port : list_member(each, "ports")) {
      device.ports.push_back(read_port(port));
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace fabric
