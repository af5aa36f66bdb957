#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/address_types.hpp"

namespace fabric {

/// The state of an RDMA port (IBA 1.3, 14.2.5.6).
enum class PortState : std::uint8_t { unknown = 0, down = 1, init = 2, armed = 3, active = 4 };

/// `ACTIVE`, `DOWN`, ...
[[nodiscard]] std::string_view text(PortState state);

enum class GidType : std::uint8_t { infiniband = 0, roce_v1 = 1, roce_v2 = 2 };

/// An entry of a port's GID table that is not empty.
struct Gid {
  std::uint32_t index = 0;
  GidType type = GidType::infiniband;
  std::array<std::uint8_t, 16> bytes = {};
  int netdev_index = 0;  ///< in the namespace where the netdev is; 0: none

  /// The IP address that it stands for: IPv4 where it is a mapped one, IPv6 otherwise.
  [[nodiscard]] netlink::IpAddress address() const;
  bool operator==(const Gid&) const = default;
};

struct Port {
  std::uint32_t number = 1;
  PortState state = PortState::unknown;
  bool is_ethernet = true;       ///< RoCE or iWARP; neither InfiniBand nor what has no link layer, as EFA
  std::uint32_t active_mtu = 0;  ///< bytes
  std::uint32_t max_mtu = 0;     ///< bytes
  std::vector<Gid> gids;

  bool operator==(const Port&) const = default;
};

/// What libibverbs tells of an RDMA device.
struct Device {
  std::string name;
  std::string problem;       ///< why nothing could be told, one sentence; then there are no ports
  bool is_unusable = false;  ///< the problem is one that every program has with it, not the library's
  std::vector<Port> ports;

  bool operator==(const Device&) const = default;
};

/// As JSON text, and back; parse throws std::exception for anything else.
[[nodiscard]] std::string print(const std::vector<Device>& devices);
[[nodiscard]] std::vector<Device> parse(std::string_view text);

}  // namespace fabric
