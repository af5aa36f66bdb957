#include "cni/state.hpp"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <utility>

namespace cni {

Places::Places(netlink::NetNs home, std::optional<netlink::NetNs> away, netlink::Roots where)
    : host(NETLINK_ROUTE, std::move(home)), roots(std::move(where)) {
  if (away) {
    pod.emplace(NETLINK_ROUTE, *std::move(away));
  }
}

netlink::Socket* Places::rdma(Side side) {
  if (has_no_rdma_ || (side == Side::pod && !pod)) {
    return nullptr;
  }
  auto& socket = side == Side::host ? rdma_host_ : rdma_pod_;
  const auto& net_ns = at(side).net_ns();
  // The pod may be another one by now.
  if (!socket || socket->net_ns().cookie() != net_ns.cookie()) {
    socket = netlink::open_rdma_socket(net_ns.again(), roots);
    has_no_rdma_ = !socket;
  }
  return socket ? &*socket : nullptr;
}

std::optional<netlink::RdmaMode> Places::rdma_mode() {
  if (auto* const socket = rdma_mode_ ? nullptr : rdma(Side::host)) {
    rdma_mode_ = netlink::rdma_mode(*socket);
  }
  return rdma_mode_;
}

std::vector<RdmaState> read_rdma(const netlink::BusAddress& device, Places& places) {
  std::vector<RdmaState> states;
  const auto mode = places.rdma_mode();
  for (const auto side : {Side::host, Side::pod}) {
    auto* const socket = mode && (side == Side::host || mode == netlink::RdmaMode::exclusive) ? places.rdma(side) : nullptr;
    if (socket == nullptr) {
      continue;
    }
    for (auto& found : netlink::rdma_devices_of(*socket, device, side == Side::host, places.roots)) {
      states.push_back({.index = found.index, .name = std::move(found.name), .side = side, .is_infiniband = found.protocol == "ib"});
    }
  }
  std::ranges::sort(states, {}, &RdmaState::index);
  return states;
}

void find_by_index(std::vector<RdmaState>& found, const std::vector<RdmaState>& recorded, Places& places) {
  for (const auto& device : recorded) {
    for (const auto side : {Side::host, Side::pod}) {
      auto* const socket = find_rdma(found, device.index) == nullptr ? places.rdma(side) : nullptr;
      if (auto there = socket == nullptr ? std::nullopt : netlink::find_rdma_device(*socket, device.index)) {
        found.push_back({.index = device.index, .name = std::move(there->name), .side = side, .is_infiniband = device.is_infiniband});
      }
    }
  }
}

const RdmaState* find_rdma(const std::vector<RdmaState>& devices, std::uint32_t index) {
  const auto found = std::ranges::find(devices, index, &RdmaState::index);
  return found == devices.end() ? nullptr : &*found;
}

std::optional<Location> locate(const netlink::DeviceId& device, Places& places) {
  if (places.pod) {
    if (auto link = netlink::find_device(*places.pod, device, Side::pod)) {
      return Location{Side::pod, std::move(*link)};
    }
  }
  if (auto link = netlink::find_device(places.host, device, Side::host)) {
    return Location{Side::host, std::move(*link)};
  }
  return std::nullopt;
}

bool is_permanent(const netlink::InterfaceAddress& address) {
  const bool is_made_by_kernel = address.prefix.address.family() == netlink::Family::v6 && address.prefix.address.is_link_local();
  return address.has_flag(IFA_F_PERMANENT) && !is_made_by_kernel;
}

bool is_permanent_global(const netlink::InterfaceAddress& address) {
  return address.has_flag(IFA_F_PERMANENT) && address.scope == RT_SCOPE_UNIVERSE && !address.prefix.address.is_link_local();
}

State read(const Location& location, Places& places) {
  const auto& link = location.link;
  auto& socket = places.at(location.side);
  State state;
  state.side = location.side;
  state.index = link.index;
  state.name = link.name;
  state.altnames = link.altnames;
  state.alias = link.alias;
  state.mtu = link.mtu;
  state.mac = link.address;
  state.up = link.has_flag(IFF_UP);
  state.promisc = link.has_flag(IFF_PROMISC);
  state.allmulti = link.has_flag(IFF_ALLMULTI);
  state.arp = !link.has_flag(IFF_NOARP);
  state.multicast = link.has_flag(IFF_MULTICAST);
  state.tx_queue_length = link.tx_queue_length;
  state.sysctls = netlink::carried_sysctls(link);
  state.xdp = link.xdp;
  state.addresses = netlink::addresses(socket, link.index);
  std::erase_if(state.addresses, [](const auto& address) { return !is_permanent(address); });
  auto routes = netlink::routes(socket, link.index);
  state.routes = std::move(routes.routes);
  state.other_routes = std::move(routes.others);
  if (link.parent) {
    state.vf = read_vf(*link.parent, places);
    state.rdma = read_rdma(*link.parent, places);
  }
  return state;
}

std::optional<State> read(const netlink::DeviceId& device, Places& places) {
  const auto location = locate(device, places);
  return location ? std::optional{read(*location, places)} : std::nullopt;
}

std::optional<Administration> find_administration(const netlink::BusAddress& device, Places& places) {
  if (!places.known_vf || places.known_vf->device != device) {
    auto id = netlink::find_vf_id(device, places.roots);
    places.known_vf = id ? std::optional{Places::KnownVf{.device = device, .id = std::move(*id)}} : std::nullopt;
  }
  auto& known = places.known_vf;
  auto pf = known ? netlink::find_physical_function(places.host, known->id.physical_function, known->pf_index) : std::nullopt;
  if (!pf) {
    return std::nullopt;
  }
  known->pf_index = pf->index;
  return Administration{.id = known->id, .pf = std::move(*pf)};
}

std::optional<netlink::VfSettings> read_vf(const Administration& administration, Places& places) {
  const auto list = netlink::list_vfs(places.host, administration.pf.index);
  const auto found = list.vfs.find(administration.id.number);
  return found == list.vfs.end() ? std::nullopt : std::optional{found->second};
}

std::optional<netlink::VfSettings> read_vf(const netlink::BusAddress& device, Places& places) {
  const auto administration = find_administration(device, places);
  return administration ? read_vf(*administration, places) : std::nullopt;
}

std::vector<UpperLink> uppers_in_pod(int index, Places& places) {
  std::vector<UpperLink> uppers;
  for (const auto& link : netlink::links(places.at(Side::pod))) {
    if (link.sits_on(index)) {
      uppers.push_back({.index = link.index, .name = link.name});
    }
  }
  return uppers;
}

}  // namespace cni
