#include "netlink/vf.hpp"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "netlink/device_id.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"

namespace netlink {

namespace {

// RTEXT_FILTER_VF and RTEXT_FILTER_SKIP_STATS: statistics would double the list, whose length is a 16-bit number.
constexpr std::uint32_t kExtensionMask = (1U << 0U) | (1U << 3U);
constexpr std::uint32_t kNotReported = 0xffffffff;

std::optional<bool> read_switch(const std::optional<std::uint32_t>& setting) {
  return !setting || *setting == kNotReported ? std::nullopt : std::optional{*setting != 0};
}

std::optional<VfVlan> parse_vlan(const Attributes& vf) {
  const auto plain = vf.value<ifla_vf_vlan>(IFLA_VF_VLAN);
  if (!plain) {
    return std::nullopt;
  }
  VfVlan vlan{.id = static_cast<std::uint16_t>(plain->vlan), .qos = static_cast<std::uint8_t>(plain->qos)};
  if (const auto full = vf.nested(IFLA_VF_VLAN_LIST).value<ifla_vf_vlan_info>(IFLA_VF_VLAN_INFO)) {
    vlan.protocol = ntohs(full->vlan_proto);
  }
  return vlan;
}

template <typename Payload>
std::optional<std::uint32_t> setting(const Attributes& vf, int attribute) {
  const auto found = vf.value<Payload>(attribute);
  return found ? std::optional<std::uint32_t>{found->setting} : std::nullopt;
}

std::optional<std::uint64_t> guid(const Attributes& vf, int attribute) {
  const auto found = vf.value<ifla_vf_guid>(attribute);
  return found ? std::optional<std::uint64_t>{found->guid} : std::nullopt;
}

VfSettings parse_vf(const Attributes& vf, std::size_t address_size) {
  VfSettings settings;
  if (const auto mac = vf.value<ifla_vf_mac>(IFLA_VF_MAC)) {
    settings.mac = HardwareAddress{std::as_bytes(std::span{mac->mac}.first(std::min(address_size, sizeof mac->mac)))};
  }
  settings.vlan = parse_vlan(vf);
  if (const auto rates = vf.value<ifla_vf_rate>(IFLA_VF_RATE)) {
    settings.rates = VfRates{.minimum = rates->min_tx_rate, .maximum = rates->max_tx_rate};
  }
  settings.spoof_check = read_switch(setting<ifla_vf_spoofchk>(vf, IFLA_VF_SPOOFCHK));
  settings.trust = read_switch(setting<ifla_vf_trust>(vf, IFLA_VF_TRUST));
  if (const auto state = vf.value<ifla_vf_link_state>(IFLA_VF_LINK_STATE)) {
    settings.link_state = static_cast<VfLinkState>(state->link_state);
  }
  settings.node_guid = guid(vf, IFLA_VF_IB_NODE_GUID);
  settings.port_guid = guid(vf, IFLA_VF_IB_PORT_GUID);
  return settings;
}

template <typename Payload>
void put(Request& request, int attribute, const Payload& payload) {
  request.put(attribute, std::as_bytes(std::span{&payload, 1}));
}

void put_vlan(Request& request, std::uint32_t vf, const VfVlan& vlan) {
  if (vlan.protocol == kProtocol8021q) {
    put(request, IFLA_VF_VLAN, ifla_vf_vlan{.vf = vf, .vlan = vlan.id, .qos = vlan.qos});
    return;
  }
  const auto list = request.nest(IFLA_VF_VLAN_LIST);
  put(request, IFLA_VF_VLAN_INFO, ifla_vf_vlan_info{.vf = vf, .vlan = vlan.id, .qos = vlan.qos, .vlan_proto = htons(vlan.protocol)});
}

void put_mac(Request& request, std::uint32_t vf, const HardwareAddress& mac) {
  ifla_vf_mac payload{};
  payload.vf = vf;
  const auto bytes = mac.bytes();
  std::memcpy(payload.mac, bytes.data(), std::min(bytes.size(), sizeof payload.mac));
  put(request, IFLA_VF_MAC, payload);
}

void put_all_but_guids(Request& request, std::uint32_t vf, VfSettings change) {
  change.node_guid.reset();
  change.port_guid.reset();
  if (change.is_empty()) {
    return;
  }
  const auto info = request.nest(IFLA_VF_INFO);
  if (change.mac) {
    put_mac(request, vf, *change.mac);
  }
  if (change.vlan) {
    put_vlan(request, vf, *change.vlan);
  }
  if (change.rates) {
    put(request, IFLA_VF_RATE, ifla_vf_rate{.vf = vf, .min_tx_rate = change.rates->minimum, .max_tx_rate = change.rates->maximum});
  }
  if (change.spoof_check) {
    put(request, IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{.vf = vf, .setting = *change.spoof_check ? 1U : 0U});
  }
  if (change.trust) {
    put(request, IFLA_VF_TRUST, ifla_vf_trust{.vf = vf, .setting = *change.trust ? 1U : 0U});
  }
  if (change.link_state) {
    put(request, IFLA_VF_LINK_STATE, ifla_vf_link_state{.vf = vf, .link_state = static_cast<std::uint32_t>(*change.link_state)});
  }
}

void put_guid(Request& request, int attribute, std::uint32_t vf, const std::optional<std::uint64_t>& guid) {
  if (guid) {
    const auto info = request.nest(IFLA_VF_INFO);
    put(request, attribute, ifla_vf_guid{.vf = vf, .guid = *guid});
  }
}

Request pf_request(int type, int pf_index) {
  Request request{type, 0};
  ifinfomsg header{};
  header.ifi_index = pf_index;
  request.append(header);
  return request;
}

}  // namespace

std::optional<VfId> find_vf_id(const BusAddress& device, const Roots& roots) {
  const auto physical = link_target_name(bus_directory(device, roots) + "/physfn");
  if (!physical) {
    return std::nullopt;
  }
  VfId id{.physical_function = {device.bus, *physical}};
  const auto siblings = virtual_functions(id.physical_function, roots);
  const auto found = std::ranges::find(siblings, device);
  id.number = static_cast<int>(found - siblings.begin());
  return found == siblings.end() ? std::nullopt : std::optional{std::move(id)};
}

std::optional<Link> find_physical_function(std::span<const Link> links, const BusAddress& physical_function) {
  const auto found =
      std::ranges::find_if(links, [&](const Link& link) { return link.parent == physical_function && !link.is_representor(); });
  return found == links.end() ? std::nullopt : std::optional{*found};
}

std::optional<Link> find_physical_function(Socket& socket, const BusAddress& physical_function, int likely_index) {
  if (auto link = likely_index != 0 ? find_link(socket, likely_index) : std::nullopt) {
    if (auto found = find_physical_function(std::span{&*link, 1}, physical_function)) {
      return found;
    }
  }
  return find_physical_function(links(socket), physical_function);
}

VfList parse_vfs(std::span<const std::byte> payload) {
  VfList list;
  if (payload.size() < sizeof(ifinfomsg)) {
    return {.vfs = {}, .is_complete = false};
  }
  const Attributes attributes{payload.subspan(sizeof(ifinfomsg))};
  const auto address = attributes.find(IFLA_ADDRESS);
  const auto all = attributes.nested(IFLA_VFINFO_LIST);
  for (const auto& attribute : all.all()) {
    const Attributes vf{attribute.bytes};
    if (const auto mac = vf.value<ifla_vf_mac>(IFLA_VF_MAC); attribute.type == IFLA_VF_INFO && mac) {
      list.vfs.emplace(static_cast<int>(mac->vf), parse_vf(vf, address ? address->size() : 0));
    }
  }
  // Where the list is longer than its length can say, the length has wrapped around: what it covers is whole, and too little.
  list.is_complete = list.vfs.size() == attributes.value<std::uint32_t>(IFLA_NUM_VF).value_or(0);
  return list;
}

VfList list_vfs(Socket& socket, int pf_index) {
  auto request = pf_request(RTM_GETLINK, pf_index);
  request.put(IFLA_EXT_MASK, kExtensionMask);
  VfList list;
  try {
    (void)socket.get(std::move(request), "read the VFs of the interface with index " + std::to_string(pf_index),
                     [&](int type, std::span<const std::byte> payload) {
                       if (type == RTM_NEWLINK) {
                         list = parse_vfs(payload);
                       }
                     });
  } catch (const Error& error) {
    if (error.error_number() != EMSGSIZE) {
      throw;
    }
    return {.vfs = {}, .is_complete = false};
  }
  return list;
}

Request vf_request(int pf_index, int number, const VfSettings& change) {
  auto request = pf_request(RTM_NEWLINK, pf_index);
  const auto vf = static_cast<std::uint32_t>(number);
  {
    const auto list = request.nest(IFLA_VFINFO_LIST);
    put_all_but_guids(request, vf, change);
    put_guid(request, IFLA_VF_IB_NODE_GUID, vf, change.node_guid);
    put_guid(request, IFLA_VF_IB_PORT_GUID, vf, change.port_guid);
  }
  return request;
}

void change_vf(Socket& socket, int pf_index, int number, const VfSettings& change, std::string_view attempt) {
  socket.request(vf_request(pf_index, number, change), attempt);
}

}  // namespace netlink
