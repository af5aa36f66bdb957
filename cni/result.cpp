#include "cni/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cni/error.hpp"
#include "cni/json.hpp"

namespace cni {

namespace {

using netlink::Family;
using netlink::IpAddress;
using netlink::IpPrefix;

bool has_families(Version version) {  // `ip4` and `ip6` instead of `ips`
  return version <= Version::v0_2_0;
}

std::string_view name_of(Family family) {
  return family == Family::v4 ? "IPv4" : "IPv6";
}

std::string text_of(const Value& object, std::string_view key) {
  const auto found = object.member(key);
  return found ? found->text() : std::string{};
}

template <typename Number>
std::optional<Number> number_of(const Value& object, std::string_view key) {
  const auto found = object.member(key);
  return found ? std::optional{static_cast<Number>(found->number(0, std::numeric_limits<Number>::max()))} : std::nullopt;
}

/// 0 is how a Go plugin may spell an absent one.
std::optional<std::uint32_t> positive_of(const Value& object, std::string_view key) {
  const auto number = number_of<std::uint32_t>(object, key);
  return number == 0U ? std::nullopt : number;
}

std::vector<Value> list_of(const Value& object, std::string_view key) {
  const auto found = object.member(key);
  return found ? found->elements() : std::vector<Value>{};
}

std::vector<std::string> texts_of(const Value& object, std::string_view key) {
  std::vector<std::string> out;
  for (const auto& element : list_of(object, key)) {
    out.push_back(element.text());
  }
  return out;
}

IpPrefix read_prefix(const Value& value) {
  const auto prefix = IpPrefix::parse(value.text());
  if (!prefix) {
    value.refuse("an address with its prefix length ('10.0.0.5/24')");
  }
  return *prefix;
}

std::optional<IpAddress> read_gateway(const Value& object, std::string_view key, Family family) {
  const auto found = object.member(key);
  if (!found || found->text().empty()) {
    return std::nullopt;
  }
  auto gateway = IpAddress::parse(found->text());
  if (!gateway || gateway->family() != family) {
    found->refuse(fmt::format("an {} address", name_of(family)));
  }
  return gateway;
}

ResultInterface read_interface(const Value& interface) {
  return {.name = interface.required("name").text(),
          .mac = text_of(interface, "mac"),
          .sandbox = text_of(interface, "sandbox"),
          .mtu = number_of<std::uint32_t>(interface, "mtu").value_or(0),
          .socket_path = text_of(interface, "socketPath"),
          .pci_id = text_of(interface, "pciID")};
}

ResultIp read_ip(const Value& ip, std::string_view address_key) {
  const auto address = read_prefix(ip.required(address_key));
  return {.interface = std::nullopt, .address = address, .gateway = read_gateway(ip, "gateway", address.address.family())};
}

std::optional<std::size_t> read_index(const Value& ip, std::size_t interfaces) {
  const auto index = ip.member("interface");
  if (index && interfaces == 0) {
    index->refuse("no index, as there are no interfaces,");
  }
  return index ? std::optional<std::size_t>{index->number(0, interfaces - 1)} : std::nullopt;
}

ResultRoute read_route(const Value& route) {
  const auto destination = read_prefix(route.required("dst"));
  return {.destination = destination,
          .gateway = read_gateway(route, "gw", destination.address.family()),
          .mtu = positive_of(route, "mtu"),
          .advmss = positive_of(route, "advmss"),
          .priority = positive_of(route, "priority"),
          .table = number_of<std::uint32_t>(route, "table"),
          .scope = number_of<std::uint8_t>(route, "scope")};
}

void read_family(const Value& object, std::string_view key, Family family, Result& result) {
  const auto found = object.member(key);
  if (!found) {
    return;
  }
  const auto check = [&](const Value& value, const IpPrefix& prefix) {
    if (prefix.address.family() != family) {
      value.refuse(fmt::format("an {} address", name_of(family)));
    }
  };
  result.ips.push_back(read_ip(*found, "ip"));
  check(found->required("ip"), result.ips.back().address);
  for (const auto& route : list_of(*found, "routes")) {
    result.routes.push_back(read_route(route));
    check(route.required("dst"), result.routes.back().destination);
  }
}

Version read_version(const Value& object, Version fallback, std::string_view source) {
  const auto version = text_of(object, "cniVersion");
  try {
    return version.empty() ? fallback : parse_version(version);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source, error.what()), error.details());
  }
}

Json read_json(std::string_view text, std::string_view source) {
  try {
    return parse_json(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} is not valid JSON: {}", source, error.what()));
  }
}

/// Leaves out what is zero or empty.
template <typename T>
void put(OrderedJson& object, const char* key, const T& value) {
  if (value != T{}) {
    object[key] = value;
  }
}

void put_address(OrderedJson& object, const char* key, const std::optional<IpAddress>& address) {
  if (address) {
    object[key] = address->text();
  }
}

template <typename T, typename Print>
void put_list(OrderedJson& object, const char* key, const std::vector<T>& values, Print print) {
  for (const auto& value : values) {
    object[key].push_back(print(value));
  }
}

OrderedJson print_interface(const ResultInterface& interface, Version version) {
  OrderedJson out;
  out["name"] = interface.name;
  put(out, "mac", interface.mac);
  if (version >= Version::v1_0_0) {
    put(out, "mtu", interface.mtu);
  }
  put(out, "sandbox", interface.sandbox);
  if (version >= Version::v1_1_0) {
    put(out, "socketPath", interface.socket_path);
    put(out, "pciID", interface.pci_id);
  }
  return out;
}

OrderedJson print_ip(const ResultIp& ip, Version version) {
  OrderedJson out;
  if (version < Version::v1_0_0) {
    out["version"] = ip.address.address.family() == Family::v4 ? "4" : "6";
  }
  if (ip.interface) {
    out["interface"] = *ip.interface;
  }
  out["address"] = ip.address.text();
  put_address(out, "gateway", ip.gateway);
  return out;
}

OrderedJson print_route(const ResultRoute& route, Version version) {
  OrderedJson out;
  out["dst"] = route.destination.text();
  put_address(out, "gw", route.gateway);
  if (version < Version::v1_1_0) {
    return out;
  }
  put(out, "mtu", route.mtu.value_or(0));
  put(out, "advmss", route.advmss.value_or(0));
  put(out, "priority", route.priority.value_or(0));
  if (route.table) {
    out["table"] = *route.table;
  }
  if (route.scope) {  // 0 says something here: reachable from everywhere
    out["scope"] = *route.scope;
  }
  return out;
}

OrderedJson print_family(const Result& result, Family family, Version version) {
  const auto ip = std::ranges::find(result.ips, family, [](const ResultIp& candidate) { return candidate.address.address.family(); });
  OrderedJson out;
  if (ip == result.ips.end()) {
    return out;
  }
  out["ip"] = ip->address.text();
  put_address(out, "gateway", ip->gateway);
  for (const auto& route : result.routes) {
    if (route.destination.address.family() == family) {
      out["routes"].push_back(print_route(route, version));
    }
  }
  return out;
}

OrderedJson print_dns(const Dns& dns) {
  OrderedJson out;
  put(out, "nameservers", dns.nameservers);
  put(out, "domain", dns.domain);
  put(out, "search", dns.search);
  put(out, "options", dns.options);
  return out;
}

}  // namespace

Dns read_dns(const Value& dns) {
  return {.nameservers = texts_of(dns, "nameservers"),
          .domain = text_of(dns, "domain"),
          .search = texts_of(dns, "search"),
          .options = texts_of(dns, "options")};
}

Result parse_result(std::string_view text, Version fallback, std::string_view source) {
  const auto json = read_json(text, source);
  const Value object{json, source};
  Result result;
  if (has_families(read_version(object, fallback, source))) {
    read_family(object, "ip4", Family::v4, result);
    read_family(object, "ip6", Family::v6, result);
  } else {
    for (const auto& interface : list_of(object, "interfaces")) {
      result.interfaces.push_back(read_interface(interface));
    }
    for (const auto& ip : list_of(object, "ips")) {
      result.ips.push_back(read_ip(ip, "address"));
      result.ips.back().interface = read_index(ip, result.interfaces.size());
    }
    for (const auto& route : list_of(object, "routes")) {
      result.routes.push_back(read_route(route));
    }
  }
  if (const auto dns = object.member("dns")) {
    result.dns = read_dns(*dns);
  }
  return result;
}

std::string print_result(const Result& result, Version version) {
  OrderedJson out;
  out["cniVersion"] = text(version);
  if (has_families(version)) {
    if (result.ips.empty()) {
      throw Error(Code::incompatible_version, fmt::format("a result without an address cannot be said in CNI version '{}'", text(version)),
                  "configure 'ipam', or set 'cniVersion' to '0.3.0' or newer");
    }
    put(out, "ip4", print_family(result, Family::v4, version));
    put(out, "ip6", print_family(result, Family::v6, version));
  } else {
    put_list(out, "interfaces", result.interfaces, [version](const auto& interface) { return print_interface(interface, version); });
    put_list(out, "ips", result.ips, [version](const auto& ip) { return print_ip(ip, version); });
    put_list(out, "routes", result.routes, [version](const auto& route) { return print_route(route, version); });
  }
  put(out, "dns", print_dns(result.dns));
  return print_json(out);
}

}  // namespace cni
