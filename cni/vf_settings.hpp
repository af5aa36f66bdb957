#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/guid.hpp"
#include "cni/json.hpp"
#include "netlink/vf.hpp"

namespace cni {

/// What a configuration asks of the PF for a VF, beside the MAC. Absent means untouched.
struct VfRequest {
  std::optional<netlink::VfVlan> vlan;
  std::optional<std::uint32_t> min_tx_rate;  ///< Mbit/s; 0 is no limit
  std::optional<std::uint32_t> max_tx_rate;
  std::optional<bool> spoof_check;
  std::optional<bool> trust;
  std::optional<netlink::VfLinkState> link_state;
  std::optional<Guid> guid;  ///< of the node and of its port; comes from the pod, not from the configuration

  [[nodiscard]] bool is_empty() const { return *this == VfRequest{}; }
  bool operator==(const VfRequest&) const = default;
};

/// Throws Error 7 naming key, value and what was wanted: beside what is out of range, a qos or 802.1ad with the VLAN 0 (some drivers take
/// that, and keep the qos when the VLAN has gone), either of them without a VLAN, and a least rate above the largest.
[[nodiscard]] VfRequest read_vf_request(const Value& config);

/// What the PF shall have for the VF, of which it says `now`, where that was asked for; a rate that was not stays as it is.
[[nodiscard]] netlink::VfSettings asked_of_pf(const VfRequest& request, const std::optional<netlink::HardwareAddress>& mac,
                                              const netlink::VfSettings& now);

/// Of what `wanted` has, each by itself that is not so in `now`; what a driver does not report is nothing to it.
[[nodiscard]] std::vector<netlink::VfSettings> differing_settings(const netlink::VfSettings& now, const netlink::VfSettings& wanted);

/// `wanted` with what it lacks from `base`.
[[nodiscard]] netlink::VfSettings laid_over(const netlink::VfSettings& base, const netlink::VfSettings& wanted);

/// The first key that `wanted` has and `now` does not report; empty when there is none.
[[nodiscard]] std::string first_unreported(const netlink::VfSettings& now, const netlink::VfSettings& wanted);

/// For people, of settings that have one alone: the key by which a configuration asks for it, and its value.
struct VfSettingText {
  std::string key;
  std::string value;
};
[[nodiscard]] VfSettingText text_of_setting(const netlink::VfSettings& setting);

/// The first setting that is not as asked: `'vlan' is 0 and shall be 100 (qos 3, 802.1q)`; nothing when all are.
[[nodiscard]] std::optional<std::string> first_difference(const netlink::VfSettings& now, const netlink::VfSettings& asked);

}  // namespace cni
