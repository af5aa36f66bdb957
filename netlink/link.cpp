#include "netlink/link.hpp"

#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "netlink/error.hpp"

namespace netlink {

namespace {

constexpr std::size_t kNameSize = IFNAMSIZ;
// RTEXT_FILTER_SKIP_STATS: statistics make up most of a link dump.
constexpr std::uint32_t kExtensionMask = 1U << 3U;

std::vector<std::int32_t> integers(std::optional<std::span<const std::byte>> bytes) {
  std::vector<std::int32_t> values(bytes ? bytes->size() / sizeof(std::int32_t) : 0);
  if (!values.empty()) {
    std::memcpy(values.data(), bytes->data(), values.size() * sizeof(std::int32_t));
  }
  return values;
}

std::vector<XdpProgram> parse_xdp(const Attributes& xdp) {
  std::vector<XdpProgram> programs;
  const auto add = [&](std::uint8_t mode, int attribute) {
    if (const auto id = xdp.value<std::uint32_t>(attribute); id && *id != 0) {
      programs.push_back({mode, *id});
    }
  };
  add(XDP_ATTACHED_DRV, IFLA_XDP_DRV_PROG_ID);
  add(XDP_ATTACHED_SKB, IFLA_XDP_SKB_PROG_ID);
  add(XDP_ATTACHED_HW, IFLA_XDP_HW_PROG_ID);
  return programs;
}

void parse_names(const Attributes& attributes, Link& link) {
  link.name = attributes.text(IFLA_IFNAME);
  link.alias = attributes.text(IFLA_IFALIAS);
  const auto properties = attributes.nested(IFLA_PROP_LIST);
  for (const auto& property : properties.all()) {
    if (property.type == IFLA_ALT_IFNAME) {
      link.altnames.push_back(attribute_text(property.bytes));
    }
  }
  std::ranges::sort(link.altnames);
}

void parse_relations(const Attributes& attributes, Link& link) {
  link.master = attributes.value<std::int32_t>(IFLA_MASTER);
  link.lower = attributes.value<std::int32_t>(IFLA_LINK);
  link.lower_is_elsewhere = attributes.find(IFLA_LINK_NETNSID).has_value();
  link.kind = attributes.nested(IFLA_LINKINFO).text(IFLA_INFO_KIND);
  if (auto address = attributes.text(IFLA_PARENT_DEV_NAME); !address.empty()) {
    link.parent = BusAddress{attributes.text(IFLA_PARENT_DEV_BUS_NAME), std::move(address)};
  }
  link.physical_port_name = attributes.text(IFLA_PHYS_PORT_NAME);
  link.has_switch_id = attributes.find(IFLA_PHYS_SWITCH_ID).has_value();
}

Request get_request(int flags, int index) {
  Request request{RTM_GETLINK, flags};
  ifinfomsg header{};
  header.ifi_index = index;
  request.append(header);
  request.put(IFLA_EXT_MASK, kExtensionMask);
  return request;
}

std::optional<Link> get_one(Socket& socket, Request request, const std::string& attempt) {
  std::optional<Link> found;
  const bool is_there = socket.get(std::move(request), attempt, [&](int type, std::span<const std::byte> payload) {
    if (type == RTM_NEWLINK) {
      found = parse_link(payload);
    }
  });
  return is_there ? std::move(found) : std::nullopt;
}

void change_altname(Socket& socket, int type, int index, const std::string& altname, std::string_view attempt) {
  Request request{type, type == RTM_NEWLINKPROP ? NLM_F_CREATE | NLM_F_EXCL | NLM_F_APPEND : 0};
  ifinfomsg header{};
  header.ifi_index = index;
  request.append(header);
  {
    const auto nest = request.nest(IFLA_PROP_LIST);
    request.put(IFLA_ALT_IFNAME, altname);
  }
  socket.request(std::move(request), attempt);
}

}  // namespace

bool Link::is_representor() const {
  std::string_view rest = physical_port_name;
  const auto skip = [&](std::string_view word) {
    if (!rest.starts_with(word)) {
      return false;
    }
    rest.remove_prefix(word.size());
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    rest.remove_prefix(digits);
    return digits > 0;
  };
  if (!has_switch_id) {
    return false;
  }
  skip("c");
  return skip("pf") && (rest.empty() || skip("vf") || skip("sf"));
}

bool Link::sits_on(int other) const {
  const bool has_peer = kind == "veth" || kind == "netkit";
  return lower == other && !lower_is_elsewhere && index != other && !has_peer;
}

std::optional<Link> parse_link(std::span<const std::byte> payload) {
  ifinfomsg header{};
  if (payload.size() < sizeof header) {
    return std::nullopt;
  }
  std::memcpy(&header, payload.data(), sizeof header);
  const Attributes attributes{payload.subspan(sizeof header)};
  Link link;
  link.index = header.ifi_index;
  link.flags = header.ifi_flags;
  link.hardware_type = header.ifi_type;
  parse_names(attributes, link);
  parse_relations(attributes, link);
  link.mtu = attributes.value<std::uint32_t>(IFLA_MTU);
  link.min_mtu = attributes.value<std::uint32_t>(IFLA_MIN_MTU).value_or(0);
  link.max_mtu = attributes.value<std::uint32_t>(IFLA_MAX_MTU).value_or(0);
  link.tx_queue_length = attributes.value<std::uint32_t>(IFLA_TXQLEN);
  if (const auto bytes = attributes.find(IFLA_ADDRESS)) {
    link.address = HardwareAddress{*bytes};
  }
  if (const auto bytes = attributes.find(IFLA_PERM_ADDRESS)) {
    link.permanent_address = HardwareAddress{*bytes};
  }
  link.xdp = parse_xdp(attributes.nested(IFLA_XDP));
  const auto families = attributes.nested(IFLA_AF_SPEC);
  link.ipv4_conf = integers(families.nested(AF_INET).find(IFLA_INET_CONF));
  link.ipv6_conf = integers(families.nested(AF_INET6).find(IFLA_INET6_CONF));
  return link;
}

std::optional<Link> find_link(Socket& socket, const std::string& name) {
  auto request = get_request(0, 0);
  request.put(name.size() < kNameSize ? IFLA_IFNAME : IFLA_ALT_IFNAME, name);
  return get_one(socket, std::move(request), "look up interface '" + name + "'");
}

std::optional<Link> find_link(Socket& socket, int index) {
  return get_one(socket, get_request(0, index), "look up the interface with index " + std::to_string(index));
}

std::vector<Link> links(Socket& socket) {
  std::vector<Link> found;
  socket.dump([] { return get_request(NLM_F_DUMP, 0); }, "list the interfaces",
              [&](int type, std::span<const std::byte> payload) {
                if (auto link = type == RTM_NEWLINK ? parse_link(payload) : std::nullopt) {
                  found.push_back(std::move(*link));
                }
              },
              [&] { found.clear(); });
  return found;
}

void change_link(Socket& socket, int index, const LinkChange& change, std::string_view attempt) {
  Request request{RTM_NEWLINK, 0};
  ifinfomsg header{};
  header.ifi_index = index;
  header.ifi_flags = change.flags;
  header.ifi_change = change.flag_mask;
  request.append(header);
  if (change.target != nullptr) {
    request.put(IFLA_NET_NS_FD, static_cast<std::uint32_t>(change.target->fd()));
  }
  if (change.index) {
    request.put(IFLA_NEW_IFINDEX, static_cast<std::int32_t>(*change.index));
  }
  if (change.name) {
    request.put(IFLA_IFNAME, *change.name);
  }
  if (change.address) {
    request.put(IFLA_ADDRESS, change.address->bytes());
  }
  if (change.mtu) {
    request.put(IFLA_MTU, *change.mtu);
  }
  if (change.alias) {
    // An alias is no C string to the kernel, and one of no length removes it.
    request.put(IFLA_IFALIAS, std::as_bytes(std::span{*change.alias}));
  }
  if (change.tx_queue_length) {
    request.put(IFLA_TXQLEN, *change.tx_queue_length);
  }
  socket.request(std::move(request), attempt);
}

void delete_link(Socket& socket, int index, std::string_view attempt) {
  Request request{RTM_DELLINK, 0};
  ifinfomsg header{};
  header.ifi_index = index;
  request.append(header);
  socket.request(std::move(request), attempt);
}

void add_altname(Socket& socket, int index, const std::string& altname, std::string_view attempt) {
  change_altname(socket, RTM_NEWLINKPROP, index, altname, attempt);
}

void remove_altname(Socket& socket, int index, const std::string& altname, std::string_view attempt) {
  change_altname(socket, RTM_DELLINKPROP, index, altname, attempt);
}

void detach_xdp(Socket& socket, int index, std::uint8_t mode, std::string_view attempt) {
  Request request{RTM_NEWLINK, 0};
  ifinfomsg header{};
  header.ifi_index = index;
  request.append(header);
  {
    const auto nest = request.nest(IFLA_XDP);
    request.put(IFLA_XDP_FD, std::int32_t{-1});
    const std::uint32_t flags = mode == XDP_ATTACHED_SKB   ? XDP_FLAGS_SKB_MODE
                                : mode == XDP_ATTACHED_DRV ? XDP_FLAGS_DRV_MODE
                                                           : XDP_FLAGS_HW_MODE;
    request.put(IFLA_XDP_FLAGS, flags);
  }
  socket.request(std::move(request), attempt);
}

}  // namespace netlink
