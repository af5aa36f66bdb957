#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cni/json.hpp"
#include "netlink/address_types.hpp"

namespace cni {

/// Of an InfiniBand node or port; its first byte is the most significant one.
using Guid = std::uint64_t;

inline constexpr Guid kZeroGuid = 0;
inline constexpr Guid kGuidOfOnes = ~Guid{0};

/// Reads `00:11:22:33:44:55:66:77` or `00-11-...`, either case; nothing when the text is not that.
[[nodiscard]] std::optional<Guid> parse_guid(std::string_view text);
/// `00:11:22:33:44:55:66:77`.
[[nodiscard]] std::string guid_text(Guid guid);
/// Neither zero nor all ones: that is what stands where none was set.
[[nodiscard]] bool is_usable(Guid guid);

/// Of the port behind an InfiniBand netdev: its address of 20 bytes ends in it. Nothing for any other address.
[[nodiscard]] std::optional<Guid> guid_of(const netlink::HardwareAddress& address);
/// Whether two addresses of InfiniBand netdevs differ in the GUID at most. The kernel lets nothing else of one be set: before it come the
/// number of the queue pair and the prefix of the subnet, which a netdev that is made anew gets anew.
[[nodiscard]] bool differ_at_most_in_guid(const netlink::HardwareAddress& one, const netlink::HardwareAddress& other);

/// `runtimeConfig.infinibandGUID`, or `args.cni.guid`. Throws Error 7 for what is no usable GUID, and for two that differ.
[[nodiscard]] std::optional<Guid> read_guid(const std::optional<Value>& runtime, const std::optional<Value>& pod);

/// A partition key, as a number or a text such as `0x8001`. Throws Error 7 for one that there cannot be.
[[nodiscard]] std::optional<std::uint16_t> read_pkey(const Value& config);

/// Whether ib-kubernetes manages the GUIDs of the pod's network. Throws Error 11 while it has not yet done so for this pod.
[[nodiscard]] bool read_ib_kubernetes(const Value& config, const std::optional<Value>& pod);

}  // namespace cni
