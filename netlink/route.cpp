#include "netlink/route.hpp"

#include <linux/rtnetlink.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#include "netlink/error.hpp"
#include "netlink/objects.hpp"

namespace netlink {

namespace {

struct RouteObject {
  OwnedObject<rtnl_route> object;
  bool is_plain = false;

  [[nodiscard]] rtnl_route* get() const { return object.get(); }
};

struct Filter {
  std::uint8_t family = AF_UNSPEC;
  std::optional<int> index;
};

/// The kernel applies the filter where it can (strict checking, Linux 4.20); who calls applies it again.
std::vector<RouteObject> dump(Socket& socket, const Filter& filter) {
  std::vector<RouteObject> found;
  const auto make_request = [&] {
    Request request{RTM_GETROUTE, NLM_F_DUMP};
    rtmsg header{};
    header.rtm_family = filter.family;
    request.append(header);
    if (filter.index) {
      request.put(RTA_OIF, static_cast<std::uint32_t>(*filter.index));
    }
    return request;
  };
  socket.dump(
      make_request, "list the routes",
      [&](int type, std::span<const std::byte> payload) {
        auto message = Request::received(type, payload);
        rtnl_route* route = nullptr;
        if (type == RTM_NEWROUTE && rtnl_route_parse(nlmsg_hdr(message.get()), &route) == 0) {
          found.push_back({.object = OwnedObject<rtnl_route>{route}, .is_plain = is_plain_route(payload)});
        }
      },
      [&] { found.clear(); });
  return found;
}

bool is_default(rtnl_route* route) {
  nl_addr* destination = rtnl_route_get_dst(route);
  return rtnl_route_get_type(route) == RTN_UNICAST && (destination == nullptr || nl_addr_get_prefixlen(destination) == 0);
}

bool leaves_by(rtnl_route* route, int index) {
  for (int hop = 0; hop < rtnl_route_get_nnexthops(route); ++hop) {
    if (rtnl_route_nh_get_ifindex(rtnl_route_nexthop_n(route, hop)) == index) {
      return true;
    }
  }
  return false;
}

std::optional<std::uint32_t> metric(rtnl_route* route, int number) {
  std::uint32_t value = 0;
  return rtnl_route_get_metric(route, number, &value) == 0 ? std::optional{value} : std::nullopt;
}

std::optional<Route> read(rtnl_route* object) {
  const auto family_number = rtnl_route_get_family(object);
  if ((family_number != AF_INET && family_number != AF_INET6) || rtnl_route_get_nnexthops(object) != 1) {
    return std::nullopt;
  }
  const auto family = static_cast<Family>(family_number);
  const auto bare = [&](nl_addr* address) {
    const auto prefix = read_address(address, family);
    return prefix && nl_addr_get_len(address) != 0 ? std::optional{prefix->address} : std::nullopt;
  };
  auto* hop = rtnl_route_nexthop_n(object, 0);
  Route route;
  route.destination =
      read_address(rtnl_route_get_dst(object), family).value_or(*IpPrefix::parse(family == Family::v4 ? "0.0.0.0/0" : "::/0"));
  route.gateway = bare(rtnl_route_nh_get_gateway(hop));
  route.source = bare(rtnl_route_get_pref_src(object));
  route.table = rtnl_route_get_table(object);
  route.priority = rtnl_route_get_priority(object);
  route.scope = rtnl_route_get_scope(object);
  route.protocol = rtnl_route_get_protocol(object);
  route.on_link = (rtnl_route_nh_get_flags(hop) & RTNH_F_ONLINK) != 0;
  route.mtu = metric(object, RTAX_MTU);
  route.advmss = metric(object, RTAX_ADVMSS);
  return route;
}

void set_hop(rtnl_route* object, int index, const Route& route) {
  auto* hop = rtnl_route_nh_alloc();
  if (hop == nullptr) {
    throw std::bad_alloc{};
  }
  rtnl_route_nh_set_ifindex(hop, index);
  if (route.gateway) {
    rtnl_route_nh_set_gateway(hop, make_address(*route.gateway, static_cast<int>(route.gateway->bytes().size()) * 8).get());
  }
  if (route.on_link) {
    rtnl_route_nh_set_flags(hop, RTNH_F_ONLINK);
  }
  rtnl_route_add_nexthop(object, hop);
}

}  // namespace

bool is_plain_route(std::span<const std::byte> payload) {
  static constexpr std::array kKnown{RTA_DST,   RTA_OIF,     RTA_GATEWAY,   RTA_PREFSRC, RTA_PRIORITY,
                                     RTA_TABLE, RTA_METRICS, RTA_CACHEINFO, RTA_PREF};
  rtmsg header{};
  if (payload.size() < sizeof header) {
    return false;
  }
  std::memcpy(&header, payload.data(), sizeof header);
  const Attributes attributes{payload.subspan(sizeof header)};
  const auto metrics = attributes.nested(RTA_METRICS);
  return header.rtm_type == RTN_UNICAST && header.rtm_tos == 0 && header.rtm_src_len == 0 &&
         attributes.value<std::uint8_t>(RTA_PREF).value_or(0) == 0 &&
         std::ranges::all_of(attributes.all(),
                             [&](const Attribute& each) { return std::ranges::find(kKnown, each.type) != kKnown.end(); }) &&
         std::ranges::all_of(metrics.all(), [](const Attribute& each) { return each.type == RTAX_MTU || each.type == RTAX_ADVMSS; });
}

InterfaceRoutes routes(Socket& socket, int index) {
  InterfaceRoutes found;
  for (const auto& route : dump(socket, {.family = AF_UNSPEC, .index = index})) {
    const auto protocol = rtnl_route_get_protocol(route.get());
    if (protocol == RTPROT_KERNEL || protocol == RTPROT_RA || !leaves_by(route.get(), index)) {
      continue;
    }
    const auto whole = route.is_plain ? read(route.get()) : std::nullopt;
    if (whole) {
      found.routes.push_back(*whole);
    } else {
      const auto family = rtnl_route_get_family(route.get()) == AF_INET6 ? Family::v6 : Family::v4;
      const auto destination = read_address(rtnl_route_get_dst(route.get()), family);
      found.others.push_back(destination ? destination->text() : "default");
    }
  }
  return found;
}

bool carries_default_route(Socket& socket, int index) {
  return std::ranges::any_of(dump(socket, {.family = AF_UNSPEC, .index = index}),
                             [&](const RouteObject& route) { return is_default(route.get()) && leaves_by(route.get(), index); });
}

bool has_default_route(Socket& socket, Family family) {
  return std::ranges::any_of(dump(socket, {.family = static_cast<std::uint8_t>(family), .index = {}}), [](const RouteObject& route) {
    return is_default(route.get()) && rtnl_route_get_table(route.get()) == RT_TABLE_MAIN;
  });
}

void add_route(Socket& socket, int index, const Route& route, std::string_view attempt) {
  const OwnedObject<rtnl_route> object{rtnl_route_alloc()};
  if (!object) {
    throw std::bad_alloc{};
  }
  const auto family = route.destination.address.family();
  rtnl_route_set_family(object.get(), static_cast<std::uint8_t>(family));
  rtnl_route_set_dst(object.get(), make_address(route.destination.address, route.destination.length).get());
  if (route.source) {
    rtnl_route_set_pref_src(object.get(), make_address(*route.source, static_cast<int>(route.source->bytes().size()) * 8).get());
  }
  rtnl_route_set_table(object.get(), route.table);
  rtnl_route_set_priority(object.get(), route.priority);
  rtnl_route_set_scope(object.get(), route.scope);
  rtnl_route_set_protocol(object.get(), route.protocol);
  rtnl_route_set_type(object.get(), RTN_UNICAST);
  if (route.mtu) {
    rtnl_route_set_metric(object.get(), RTAX_MTU, *route.mtu);
  }
  if (route.advmss) {
    rtnl_route_set_metric(object.get(), RTAX_ADVMSS, *route.advmss);
  }
  set_hop(object.get(), index, route);
  nl_msg* message = nullptr;
  if (const int error = rtnl_route_build_add_request(object.get(), NLM_F_CREATE | NLM_F_APPEND, &message); error < 0) {
    throw Error(attempt, EINVAL, nl_geterror(error));
  }
  socket.request(Request{message}, attempt);
}

}  // namespace netlink
