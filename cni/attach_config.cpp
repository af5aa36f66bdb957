#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <type_traits>
#include <utility>

#include "cni/config.hpp"
#include "cni/config_keys.hpp"
#include "cni/error.hpp"
#include "cni/json.hpp"
#include "cni/sysctl_settings.hpp"
#include "cni/text_keys.hpp"

// What ADD reads: strictly, because nothing may be accepted that is not done.

namespace cni {

namespace {

using netlink::IpPrefix;

/// Where a setting may come from, weakest first.
struct Sources {
  Value config;
  Json arguments;                // CNI_ARGS
  std::optional<Value> runtime;  // runtimeConfig
  std::optional<Value> pod;      // args.cni
};

Sources find_sources(const Json& json, const std::string& cni_args) {
  const Value config{json, ""};
  const auto args = config.member("args");
  return {.config = config,
          .arguments = parse_cni_args(cni_args),
          .runtime = config.member("runtimeConfig"),
          .pod = args ? args->member("cni") : std::nullopt};
}

std::optional<Value> member(const std::optional<Value>& object, std::string_view key) {
  return object ? object->member(key) : std::nullopt;
}

std::optional<Value> given(const std::optional<Value>& object, std::string_view key) {
  return object ? given(*object, key) : std::nullopt;
}

std::optional<Value> argument(const Sources& from, std::string_view name) {
  const auto found = from.arguments.find(name);
  if (found == from.arguments.end() || found->get_ref<const std::string&>().empty()) {
    return std::nullopt;
  }
  return Value{*found, "", fmt::format("CNI_ARGS {}", name)};
}

/// What `read` makes of a key that args.cni may override. Both are read: a wrong value is an error also where it does not count.
template <typename Read>
auto strongest(const Sources& from, std::string_view key, Read read) {
  std::optional<std::invoke_result_t<Read, const Value&>> out;
  for (const auto& value : {member(from.config, key), member(from.pod, key)}) {
    if (value) {
      out = read(*value);
    }
  }
  return out;
}

bool read_bool(const Value& value) {
  return value.boolean();
}

std::uint32_t read_mtu(const Value& value) {
  constexpr std::uint64_t kSmallest = 68;
  constexpr std::uint64_t kLargest = 65535;
  const auto mtu = value.json().is_number_unsigned() ? value.json().get<std::uint64_t>() : kLargest + 1;
  if (mtu != 0 && (mtu < kSmallest || mtu > kLargest)) {
    value.refuse(fmt::format("a number from {} to {}, or 0 to keep the device's,", kSmallest, kLargest));
  }
  return static_cast<std::uint32_t>(mtu);
}

std::uint32_t read_queue_length(const Value& value) {
  constexpr std::uint64_t kLongest = 0x7fffffff;
  return static_cast<std::uint32_t>(value.number(0, kLongest));
}

void read_mac(const Sources& from, AttachConfig& out) {
  for (const auto& value : {given(from.config, "mac"), argument(from, "MAC"), given(from.runtime, "mac"), given(from.pod, "mac")}) {
    if (!value) {
      continue;
    }
    out.mac = parse_unicast(value->text());
    out.mac_source = value->path();
    if (!out.mac) {
      value->refuse(kWantedAddress);
    }
  }
}

void read_infiniband(const Sources& from, AttachConfig& out) {
  out.vf.guid = read_guid(from.runtime, from.pod);
  out.ib_kubernetes_enabled = read_ib_kubernetes(from.config, from.pod);
  out.pkey = read_pkey(from.config);
  if (out.pkey) {
    out.notes.push_back(
        fmt::format("'pkey' {:#06x} is not set by this plugin: the subnet manager gives the port its partitions", *out.pkey));
  }
}

std::vector<SysctlSetting> read_all_sysctls(const Sources& from) {
  std::vector<SysctlSetting> out;
  for (const auto& object : {member(from.config, "sysctl"), member(from.pod, "sysctl")}) {
    if (object) {
      merge_sysctls(out, read_sysctls(*object));
    }
  }
  return out;
}

Json split_at_commas(const std::optional<Value>& value) {
  auto parts = Json::array();
  if (value) {
    const auto text = value->text();
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = text.find(',', begin);
      parts.push_back(text.substr(begin, end - begin));
    }
  }
  return parts;
}

/// Addresses for an interface without IPAM. An IPAM plugin judges them itself, and may take some without a prefix length.
std::vector<IpPrefix> read_prefixes(const Value& list, bool has_ipam) {
  std::vector<IpPrefix> out;
  for (const auto& element : list.elements()) {
    const auto text = element.text();
    if (has_ipam) {
      continue;
    }
    const auto prefix = IpPrefix::parse(text);
    if (!prefix) {
      element.refuse("an address with its prefix length such as \"10.0.0.5/24\"");
    }
    out.push_back(*prefix);
  }
  return out;
}

std::vector<IpPrefix> read_ips(const Sources& from, bool has_ipam) {
  std::vector<IpPrefix> out;
  const auto argument_list = split_at_commas(argument(from, "IP"));
  for (const auto& list :
       {std::optional<Value>{std::in_place, argument_list, "", "CNI_ARGS IP"}, member(from.runtime, "ips"), member(from.pod, "ips")}) {
    auto prefixes = list ? read_prefixes(*list, has_ipam) : std::vector<IpPrefix>{};
    if (!prefixes.empty()) {
      out = std::move(prefixes);
    }
  }
  return out;
}

void check(const Value& object, const TextKey& key) {
  if (const auto value = given(object, key.name); value && !key.accepts(value->text())) {
    value->refuse(key.wanted);
  }
}

void check_selectors(const Sources& from, const Selectors& selectors) {
  for (const auto& key : {kDeviceId, kPciBusId, kDevice, kHwaddr, kKernelPath, kRdmaDevice}) {
    check(from.config, key);
  }
  if (from.runtime) {
    check(*from.runtime, kDeviceId);
  }
  const auto device_id = given(from.config, kDeviceId.name);
  const auto pci_bus_id = given(from.config, kPciBusId.name);
  if (!selectors.runtime_device_id && device_id && pci_bus_id && device_id->json() != pci_bus_id->json()) {
    throw Error(Code::invalid_configuration,
                fmt::format("'deviceID' is '{}' and 'pciBusID' is '{}', one device was wanted", device_id->text(), pci_bus_id->text()));
  }
}

void check_ipam(const Value& ipam) {
  check(ipam, kIpamType);
  const bool has_type = given(ipam, kIpamType.name).has_value();
  const bool is_none = ipam.json().empty() || (ipam.json().size() == 1 && find_member(ipam.json(), kIpamType.name) != nullptr);
  if (!has_type && !is_none) {
    throw Error(Code::invalid_configuration, "'ipam' has no 'type', the name of an IPAM plugin was wanted",
                R"(write "ipam": {} for no IPAM)");
  }
}

DefaultRoute read_default_route(const Value& value) {
  const auto word = value.text();
  if (word != "drop" && word != "keep") {
    value.refuse("'drop' or 'keep'");
  }
  return word == "keep" ? DefaultRoute::keep : DefaultRoute::drop;
}

RdmaRequest read_rdma(const Value& value) {
  const auto request = parse_rdma_request(value.text());
  if (!request) {
    value.refuse("'auto', 'exclusive', 'shared' or 'off'");
  }
  return *request;
}

constexpr std::chrono::milliseconds kLongestWait = std::chrono::minutes{10};

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  std::chrono::milliseconds total{0};
  do {
    std::uint32_t count = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{}) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    const auto unit = text.substr(0, text.find_first_of("0123456789"));
    text.remove_prefix(unit.size());
    if (unit == "ms") {
      total += std::chrono::milliseconds{count};
    } else if (unit == "s") {
      total += std::chrono::seconds{count};
    } else if (unit == "m") {
      total += std::chrono::minutes{count};
    } else if (count != 0 || !unit.empty()) {
      return std::nullopt;
    }
    if (total > kLongestWait) {
      return std::nullopt;
    }
  } while (!text.empty());
  return total;
}

template <typename Duration>
void read_wait(const Value& wait, std::string_view key, Duration& out) {
  const auto value = wait.member(key);
  if (!value) {
    return;
  }
  const auto duration = value->json() == 0 ? parse_duration("0") : value->json().is_string() ? parse_duration(value->text()) : std::nullopt;
  if (!duration) {
    value->refuse(R"(a duration such as "500ms", "5s" or "1m30s", at most "10m",)");
  }
  out = *duration;
}

Waits read_waits(const Value& wait) {
  static constexpr std::array<std::string_view, 4> kKeys{"carrier", "gid", "device", "owner"};
  refuse_unknown_members(wait, kKeys, Code::unsupported_field);
  Waits waits;
  read_wait(wait, "carrier", waits.carrier);
  read_wait(wait, "gid", waits.gid);
  read_wait(wait, "device", waits.device);
  read_wait(wait, "owner", waits.owner);
  return waits;
}

void read_log_keys(const Value& config, std::vector<std::string>& notes) {
  if (const auto level = given(config, "logLevel"); level && !parse_log_level(level->text())) {
    notes.push_back(fmt::format("'logLevel' is '{:.80}', info is used: panic, error, warning, info or debug was wanted", level->text()));
  }
  if (const auto file = given(config, "logFile"); file && !file->json().is_string()) {
    notes.emplace_back("'logFile' is ignored: the path of a file was wanted");
  }
}

/// Those that are read elsewhere, or not at all: what is wrong with them is an error all the same.
void check_the_rest(const Sources& from) {
  if (const auto ipam = from.config.member("ipam")) {
    check_ipam(*ipam);
  }
  if (const auto prev_result = from.config.member("prevResult"); prev_result && !prev_result->json().is_object()) {
    prev_result->refuse("an object");
  }
  if (from.runtime) {
    check(*from.runtime, kDeviceInfoFile);
  }
  if (from.pod) {
    if (const auto debug = from.pod->member("debug")) {
      static_cast<void>(debug->boolean());
    }
  }
}

}  // namespace

std::optional<RdmaRequest> parse_rdma_request(std::string_view word) {
  static constexpr auto kWords = std::to_array<std::pair<std::string_view, RdmaRequest>>({{"auto", RdmaRequest::automatic},
                                                                                          {"exclusive", RdmaRequest::exclusive},
                                                                                          {"shared", RdmaRequest::shared},
                                                                                          {"off", RdmaRequest::off}});
  const auto* const found = std::ranges::find(kWords, word, &std::pair<std::string_view, RdmaRequest>::first);
  return found == kWords.end() ? std::nullopt : std::optional{found->second};
}

AttachConfig read_attach_config(const NetworkConfig& network, const std::string& cni_args) {
  const auto json = parse_json(network.raw);
  const auto from = find_sources(json, cni_args);
  const auto& config = from.config;
  AttachConfig out;
  out.notes = judge_keys(config);
  read_log_keys(config, out.notes);
  check_selectors(from, network.selectors);
  check_the_rest(from);
  out.selectors = network.selectors;
  out.mtu = strongest(from, "mtu", read_mtu);
  if (out.mtu == 0U) {
    out.mtu.reset();
  }
  read_mac(from, out);
  out.promisc = strongest(from, "promisc", read_bool);
  out.allmulti = strongest(from, "allmulti", read_bool);
  out.tx_queue_length = strongest(from, "txQLen", read_queue_length);
  out.sysctls = read_all_sysctls(from);
  out.vf = read_vf_request(config);
  if (const auto rdma = given(config, "rdma")) {
    out.rdma = read_rdma(*rdma);
  }
  check(config, kRdmaName);
  if (const auto name = given(config, kRdmaName.name)) {
    out.rdma_name = name->text();
  }
  read_infiniband(from, out);
  out.ips = read_ips(from, !network.ipam_type.empty());
  out.gets_addresses = !network.ipam_type.empty() || !out.ips.empty();
  if (const auto file = given(from.runtime, kDeviceInfoFile.name)) {
    out.device_info_file = canonical_device_info_path(file->text());
  }
  if (const auto dns = config.member("dns")) {
    out.dns = read_dns(*dns);
  }
  if (const auto default_route = given(config, "defaultRoute")) {
    out.default_route = read_default_route(*default_route);
  }
  if (const auto allow_in_use = config.member("allowInUse")) {
    out.allow_in_use = allow_in_use->boolean();
  }
  if (const auto wait = config.member("wait")) {
    out.waits = read_waits(*wait);
  }
  return out;
}

}  // namespace cni
