#include "netlink/address.hpp"

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <netlink/route/addr.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "netlink/error.hpp"
#include "netlink/objects.hpp"

namespace netlink {

OwnedAddress make_address(const IpAddress& address, int prefix_length) {
  const auto bytes = address.bytes();
  OwnedAddress made{nl_addr_build(static_cast<int>(address.family()), bytes.data(), bytes.size())};
  if (!made) {
    throw std::bad_alloc{};
  }
  nl_addr_set_prefixlen(made.get(), prefix_length);
  return made;
}

std::optional<IpPrefix> read_address(nl_addr* address, Family family) {
  if (address == nullptr || (nl_addr_get_len(address) != 0 && nl_addr_get_family(address) != static_cast<int>(family))) {
    return std::nullopt;
  }
  std::array<std::byte, 16> zeros{};
  const auto length = nl_addr_get_len(address);
  const auto bytes = length == 0 ? std::span<const std::byte>{zeros}.first(family == Family::v4 ? 4 : 16)
                                 : std::span{static_cast<const std::byte*>(nl_addr_get_binary_addr(address)), length};
  return IpPrefix{IpAddress{family, bytes}, static_cast<std::uint8_t>(nl_addr_get_prefixlen(address))};
}

namespace {

std::optional<IpAddress> bare(nl_addr* address, Family family) {
  const auto prefix = read_address(address, family);
  return prefix ? std::optional{prefix->address} : std::nullopt;
}

std::optional<InterfaceAddress> read(rtnl_addr* object) {
  const int family_number = rtnl_addr_get_family(object);
  if (family_number != AF_INET && family_number != AF_INET6) {
    return std::nullopt;
  }
  const auto family = static_cast<Family>(family_number);
  const auto local = read_address(rtnl_addr_get_local(object), family);
  if (!local) {
    return std::nullopt;
  }
  InterfaceAddress address{.prefix = *local,
                           .peer = {},
                           .broadcast = bare(rtnl_addr_get_broadcast(object), family),
                           .scope = 0,
                           .flags = 0,
                           .label = {},
                           .metric = {}};
  address.prefix.length = static_cast<std::uint8_t>(rtnl_addr_get_prefixlen(object));
  if (const auto peer = bare(rtnl_addr_get_peer(object), family); peer && *peer != local->address) {
    address.peer = peer;
  }
  address.scope = static_cast<std::uint8_t>(rtnl_addr_get_scope(object));
  address.flags = rtnl_addr_get_flags(object);
  if (const char* label = rtnl_addr_get_label(object); label != nullptr) {
    address.label = label;
  }
  return address;
}

}  // namespace

std::vector<InterfaceAddress> addresses(Socket& socket, int index) {
  std::vector<InterfaceAddress> found;
  const auto make_request = [&] {
    Request request{RTM_GETADDR, NLM_F_DUMP};
    ifaddrmsg header{};
    header.ifa_index = static_cast<std::uint32_t>(index);
    request.append(header);
    return request;
  };
  const auto collect = [](nl_object* object, void* list) {
    auto* address = reinterpret_cast<rtnl_addr*>(object);
    if (auto value = read(address)) {
      static_cast<std::vector<std::pair<int, InterfaceAddress>>*>(list)->emplace_back(rtnl_addr_get_ifindex(address), std::move(*value));
    }
  };
  socket.dump(
      make_request, "list the addresses of interface " + std::to_string(index),
      [&](int type, std::span<const std::byte> payload) {
        std::vector<std::pair<int, InterfaceAddress>> parsed;
        auto message = Request::received(type, payload);
        nlmsg_set_proto(message.get(), NETLINK_ROUTE);
        nl_msg_parse(message.get(), collect, &parsed);
        const auto header_size = std::min(sizeof(ifaddrmsg), payload.size());
        const auto metric = Attributes{payload.subspan(header_size)}.value<std::uint32_t>(IFA_RT_PRIORITY);
        for (auto& [owner, address] : parsed) {
          if (owner == index) {
            address.metric = metric;
            found.push_back(std::move(address));
          }
        }
      },
      [&] { found.clear(); });
  return found;
}

void add_address(Socket& socket, int index, const InterfaceAddress& address, std::string_view attempt) {
  // By hand, because libnl-route 3.7 sends no metric, and an IPv6 address in place of its peer.
  Request request{RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL};
  ifaddrmsg header{};
  header.ifa_family = static_cast<std::uint8_t>(address.prefix.address.family());
  header.ifa_prefixlen = address.prefix.length;
  header.ifa_scope = address.scope;
  header.ifa_index = static_cast<std::uint32_t>(index);
  request.append(header);
  request.put(IFA_LOCAL, address.prefix.address.bytes());
  request.put(IFA_ADDRESS, address.peer.value_or(address.prefix.address).bytes());
  request.put(IFA_FLAGS, address.flags);
  if (address.broadcast) {
    request.put(IFA_BROADCAST, address.broadcast->bytes());
  }
  if (!address.label.empty()) {
    request.put(IFA_LABEL, address.label);
  }
  if (address.metric) {
    request.put(IFA_RT_PRIORITY, *address.metric);
  }
  socket.request(std::move(request), attempt);
}

}  // namespace netlink
