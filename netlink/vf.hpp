#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "netlink/address_types.hpp"
#include "netlink/link.hpp"
#include "netlink/message.hpp"
#include "netlink/roots.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// Where a VF is administered: its PF, and its number there.
struct VfId {
  BusAddress physical_function;
  int number = 0;

  bool operator==(const VfId&) const = default;
};

/// By sysfs (`physfn`, `virtfnN`); nothing for a device that is no VF, or whose PF this machine does not have (a VF handed to a guest).
[[nodiscard]] std::optional<VfId> find_vf_id(const BusAddress& device, const Roots& roots);

/// The netdev that administers the VFs of a PF, never a representor, which in switchdev mode has the same parent; nothing when it is not
/// among the links.
[[nodiscard]] std::optional<Link> find_physical_function(std::span<const Link> links, const BusAddress& physical_function);
/// The same in the socket's namespace; `likely_index`: where it was last, 0 = not known. Throws Error.
[[nodiscard]] std::optional<Link> find_physical_function(Socket& socket, const BusAddress& physical_function, int likely_index);

inline constexpr std::uint16_t kProtocol8021q = 0x8100;
inline constexpr std::uint16_t kProtocol8021ad = 0x88a8;

/// The VLAN whose tag the PF puts on what the VF sends, and takes off; id 0 is none.
struct VfVlan {
  std::uint16_t id = 0;
  std::uint8_t qos = 0;
  std::uint16_t protocol = kProtocol8021q;

  bool operator==(const VfVlan&) const = default;
};

/// Mbit/s; 0 is no limit.
struct VfRates {
  std::uint32_t minimum = 0;
  std::uint32_t maximum = 0;

  bool operator==(const VfRates&) const = default;
};

/// The kernel's numbers. A driver without the setting reports `automatic`.
enum class VfLinkState : std::uint32_t { automatic = 0, enable = 1, disable = 2 };

/// What a PF has set for one of its VFs. Absent: the driver does not report it, or nobody wants it changed.
struct VfSettings {
  std::optional<HardwareAddress> mac;  ///< as long as the PF's own; all zeros where none is set
  std::optional<VfVlan> vlan;
  std::optional<VfRates> rates;
  std::optional<bool> spoof_check;
  std::optional<bool> trust;
  std::optional<VfLinkState> link_state;
  /// InfiniBand alone, in the byte order of the host: the first byte of a GUID is its most significant one. 0 where none is set.
  std::optional<std::uint64_t> node_guid;
  std::optional<std::uint64_t> port_guid;

  [[nodiscard]] bool is_empty() const { return *this == VfSettings{}; }
  bool operator==(const VfSettings&) const = default;
};

/// The VFs of a PF, by number.
struct VfList {
  std::map<int, VfSettings> vfs;
  /// False when the kernel's answer is cut short: its list has to fit 64 KiB, which some hundred VFs exceed.
  bool is_complete = true;
};

/// Reads the payload of RTM_NEWLINK that was asked for with RTEXT_FILTER_VF.
[[nodiscard]] VfList parse_vfs(std::span<const std::byte> payload);

/// What the PF with this index says of its VFs, without their statistics; nothing of them, and incomplete, where there are too many for an
/// answer at all (EMSGSIZE). Throws Error.
[[nodiscard]] VfList list_vfs(Socket& socket, int pf_index);

/// The request that sets what `change` has: the kernel reads nothing of a VF behind a GUID, so that each GUID is a part of its own.
[[nodiscard]] Request vf_request(int pf_index, int number, const VfSettings& change);

/// Sets what `change` has. The plain form of a VLAN, which every driver takes, unless the protocol is another than 802.1q. Throws Error.
void change_vf(Socket& socket, int pf_index, int number, const VfSettings& change, std::string_view attempt);

}  // namespace netlink
