#include "fabric/rdma_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace fabric {

namespace {

constexpr std::uint32_t kLeastMtu = 256;
constexpr std::uint32_t kLargestMtu = 4096;
constexpr std::uint32_t kHeaders = 96;  // GRH, UDP, BTH, XRC, atomic and ICRC: the kernel's iboe_get_mtu

// ice, i40e, idpf and iavf are what irdma's devices hang on.
constexpr std::array<std::string_view, 9> kWithoutHeaders{"ice", "i40e", "idpf", "iavf", "erdma", "mana", "efa", "cxgb4", "siw"};

constexpr std::string_view kNotTold = "not told by the driver";

std::uint32_t headers_of(std::string_view driver) {
  return std::ranges::find(kWithoutHeaders, driver) != kWithoutHeaders.end() ? 0 : kHeaders;
}

Finding finding(std::string_view id, Verdict verdict, std::string seen, std::string wanted, std::string advice = {}) {
  return {.id = std::string{id}, .verdict = verdict, .seen = std::move(seen), .wanted = std::move(wanted), .advice = std::move(advice)};
}

/// As the GID table has it: IPv4 as a mapped address.
std::array<std::byte, 16> gid_bytes(const netlink::IpAddress& address) {
  std::array<std::byte, 16> bytes{};
  if (address.family() == netlink::Family::v4) {
    bytes[10] = bytes[11] = std::byte{0xff};
  }
  std::ranges::copy(address.bytes(), bytes.end() - static_cast<std::ptrdiff_t>(address.bytes().size()));
  return bytes;
}

bool stands_for(const Gid& gid, const netlink::IpAddress& address) {
  return std::ranges::equal(std::as_bytes(std::span{gid.bytes}), gid_bytes(address));
}

/// RoCE ports have no GID of the type of InfiniBand, iWARP's have that one alone.
bool is_iwarp(const Port& port) {
  return port.is_ethernet && std::ranges::find(port.gids, GidType::infiniband, &Gid::type) != port.gids.end();
}

/// Why an address has no RoCE v2 GID on the netdev, in as far as the table tells, and what then helps.
struct Miss {
  std::string_view seen;
  std::string_view advice;
};

constexpr Miss kAbsent{
    "none",
    "see with `ip address` that the address is on the port's own netdev, and that this is up: the kernel makes a GID of it at once"};
constexpr Miss kElsewhere{"on another netdev",
                          "use the netdev that has the address: a port also has the GIDs of the VLANs and the bond above its own"};
constexpr Miss kOlderType{"RoCE v1 only", "switch RoCE v2 on in the adapter's firmware, or use an adapter that has it"};

Miss miss(const Port& port, const netlink::IpAddress& address, int netdev_index) {
  Miss found = kAbsent;
  for (const auto& gid : port.gids) {
    if (!stands_for(gid, address)) {
      continue;
    }
    if (gid.netdev_index == netdev_index) {
      return kOlderType;
    }
    found = kElsewhere;
  }
  return found;
}

std::string advice_on_state(const Port& port) {
  switch (port.state) {
    case PortState::down:
      return port.is_ethernet
                 ? "bring its interface up and see that it has a carrier: cable, switch port, and for a VF its PF, which must be up, too"
                 : "see that it has a link: cable, switch port, and for a VF its link state on the PF, which must be up, too";
    case PortState::init:
      return port.is_ethernet ? "give its interface an IPv4 address: an iWARP port is not ACTIVE without"
                              : "see that a subnet manager runs in this fabric, and for a VF that it has a GUID which that one lets in";
    case PortState::armed:
      return "look again in some seconds, and then into the subnet manager's log: it has configured the port and not yet activated it";
    case PortState::unknown:
      return "use a kernel whose driver tells the state of its ports";
    case PortState::active:
      break;
  }
  return {};
}

std::string seen_state(const Port& port) {
  if (port.state == PortState::init) {
    return port.is_ethernet ? "INIT (its interface has no IPv4 address)" : "INIT (no subnet manager has configured it)";
  }
  return std::string{port.state == PortState::unknown ? kNotTold : text(port.state)};
}

}  // namespace

std::uint32_t expected_active_mtu(std::uint32_t netdev_mtu, std::string_view driver) {
  std::uint32_t mtu = kLargestMtu;
  while (mtu > kLeastMtu && mtu + headers_of(driver) > netdev_mtu) {
    mtu /= 2;
  }
  return mtu;
}

Finding port_active(const Port& port) {
  auto verdict = Verdict::fails;
  if (port.state == PortState::active) {
    verdict = Verdict::holds;
  } else if (port.state == PortState::unknown) {
    verdict = Verdict::unknown;
  }
  return finding("port_active", verdict, seen_state(port), "ACTIVE", advice_on_state(port));
}

Finding active_mtu(const Port& port, std::uint32_t netdev_mtu, std::string_view driver) {
  const auto most = port.max_mtu == 0 ? kLargestMtu : port.max_mtu;
  const auto wanted = port.is_ethernet ? std::min(expected_active_mtu(netdev_mtu, driver), most) : most;
  const auto answer = [&](Verdict verdict, std::string advice = {}) {
    return finding("active_mtu", verdict, port.active_mtu == 0 ? std::string{kNotTold} : std::to_string(port.active_mtu),
                   std::to_string(wanted), std::move(advice));
  };
  if (port.active_mtu >= wanted) {
    return answer(Verdict::holds);
  }
  const auto least = kLeastMtu + headers_of(driver);
  if (port.is_ethernet && netdev_mtu < least) {
    return answer(Verdict::fails, fmt::format("set the netdev's MTU to {} or more: with {} it has no room for the smallest RDMA packet",
                                              least, netdev_mtu));
  }
  if (port.active_mtu == 0) {
    return answer(Verdict::unknown, "use a kernel whose driver tells the MTU of its ports");
  }
  if (!port.is_ethernet) {
    return answer(Verdict::unknown, "see which MTU the subnet manager gives the port's partition: the netdev's does not matter here");
  }
  return answer(Verdict::fails,
                fmt::format("see with `rdma link` that the port's netdev is the one with the MTU of {}, where a port of a bond has the "
                            "bond's MTU, and set that MTU again",
                            netdev_mtu));
}

std::optional<std::uint32_t> gid_index(const Port& port, const netlink::IpAddress& address, int netdev_index) {
  const auto found = std::ranges::find_if(port.gids, [&](const Gid& gid) {
    return gid.type == GidType::roce_v2 && gid.netdev_index == netdev_index && stands_for(gid, address);
  });
  return found == port.gids.end() ? std::nullopt : std::optional{found->index};
}

Finding gid(const Port& port, const std::vector<netlink::IpAddress>& addresses, int netdev_index) {
  const auto answer = [](Verdict verdict, std::string seen, std::string_view advice = {}) {
    return finding("gid", verdict, std::move(seen), "a RoCE v2 GID for each address", std::string{advice});
  };
  if (!port.is_ethernet || is_iwarp(port)) {
    return answer(Verdict::holds, "not needed (this is no RoCE port)");
  }
  if (addresses.empty()) {
    return answer(Verdict::holds, "not needed (there is no address)");
  }
  std::vector<std::string> present;
  std::vector<std::string> missing;
  std::string_view advice;
  for (const auto& address : addresses) {
    if (const auto index = gid_index(port, address, netdev_index)) {
      present.push_back(fmt::format("{} for {}", *index, address.text()));
      continue;
    }
    const auto why = miss(port, address, netdev_index);
    missing.push_back(fmt::format("{} for {}", why.seen, address.text()));
    advice = advice.empty() ? why.advice : advice;
  }
  return missing.empty() ? answer(Verdict::holds, fmt::format("{}", fmt::join(present, ", ")))
                         : answer(Verdict::fails, fmt::format("{}", fmt::join(missing, ", ")), advice);
}

}  // namespace fabric
