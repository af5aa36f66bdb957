#include "cni/vf_settings.hpp"

#include <fmt/format.h>
#include <strings.h>

#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "cni/config_keys.hpp"
#include "cni/error.hpp"

namespace cni {

namespace {

using netlink::VfLinkState;
using netlink::VfRates;
using netlink::VfSettings;
using netlink::VfVlan;

/// In the order in which they are set.
constexpr auto kMembers = std::make_tuple(&VfSettings::vlan, &VfSettings::mac, &VfSettings::rates, &VfSettings::spoof_check,
                                          &VfSettings::trust, &VfSettings::link_state, &VfSettings::node_guid, &VfSettings::port_guid);

template <typename Function>
void for_each_member(Function function) {
  std::apply([&](auto... member) { (function(member), ...); }, kMembers);
}

std::optional<std::uint32_t> read_number(const Value& config, std::string_view key, std::uint32_t maximum) {
  const auto value = given(config, key);
  return value ? std::optional{static_cast<std::uint32_t>(value->number(0, maximum))} : std::nullopt;
}

std::optional<bool> read_switch(const Value& config, std::string_view key) {
  const auto value = given(config, key);
  if (!value) {
    return std::nullopt;
  }
  const auto word = value->text();
  if (word != "on" && word != "off") {
    value->refuse("'on' or 'off'");
  }
  return word == "on";
}

std::optional<VfLinkState> read_link_state(const Value& config) {
  const auto value = given(config, "link_state");
  if (!value) {
    return std::nullopt;
  }
  const auto word = value->text();
  if (word != "auto" && word != "enable" && word != "disable") {
    value->refuse("'auto', 'enable' or 'disable'");
  }
  return word == "auto" ? VfLinkState::automatic : word == "enable" ? VfLinkState::enable : VfLinkState::disable;
}

std::optional<std::uint16_t> read_protocol(const Value& config) {
  const auto value = given(config, "vlanProto");
  if (!value) {
    return std::nullopt;
  }
  const auto word = value->text();
  const bool is_outer = ::strcasecmp(word.c_str(), "802.1ad") == 0;
  if (!is_outer && ::strcasecmp(word.c_str(), "802.1q") != 0) {
    value->refuse("'802.1q' or '802.1ad'");
  }
  return is_outer ? netlink::kProtocol8021ad : netlink::kProtocol8021q;
}

std::optional<VfVlan> read_vlan(const Value& config) {
  constexpr std::uint32_t kLargestId = 4094;
  constexpr std::uint32_t kLargestQos = 7;
  const auto id = read_number(config, "vlan", kLargestId);
  const auto qos = read_number(config, "vlanQoS", kLargestQos);
  const auto protocol = read_protocol(config);
  const auto require_vlan = [&](std::string_view key, bool needs_one) {
    if (needs_one && id.value_or(0) == 0) {
      throw Error(Code::invalid_configuration,
                  fmt::format("'{}' is {}, and 'vlan' is {}: a VLAN from 1 to {} was wanted", key, given(config, key)->json().dump(),
                              id ? "0, which is none" : "not set", kLargestId),
                  fmt::format("Set 'vlan', or leave '{}' out.", key));
    }
  };
  require_vlan("vlanQoS", qos && (!id || *qos != 0));
  require_vlan("vlanProto", protocol && (!id || *protocol == netlink::kProtocol8021ad));
  if (!id) {
    return std::nullopt;
  }
  return VfVlan{.id = static_cast<std::uint16_t>(*id),
                .qos = static_cast<std::uint8_t>(qos.value_or(0)),
                .protocol = protocol.value_or(netlink::kProtocol8021q)};
}

std::string on_off(bool on) {
  return on ? "on" : "off";
}

std::string value_text(const VfVlan& vlan) {
  return vlan == VfVlan{} ? "0"
                          : fmt::format("{} (qos {}, {})", vlan.id, vlan.qos,
                                        vlan.protocol == netlink::kProtocol8021ad  ? "802.1ad"
                                        : vlan.protocol == netlink::kProtocol8021q ? "802.1q"
                                                                                   : fmt::format("protocol {:#x}", vlan.protocol));
}

std::string value_text(VfLinkState state) {
  return state == VfLinkState::enable ? "enable" : state == VfLinkState::disable ? "disable" : "auto";
}

}  // namespace

VfRequest read_vf_request(const Value& config) {
  constexpr auto kLargest = std::numeric_limits<std::uint32_t>::max();
  VfRequest request{.vlan = read_vlan(config),
                    .min_tx_rate = read_number(config, "min_tx_rate", kLargest),
                    .max_tx_rate = read_number(config, "max_tx_rate", kLargest),
                    .spoof_check = read_switch(config, "spoofchk"),
                    .trust = read_switch(config, "trust"),
                    .link_state = read_link_state(config),
                    .guid = {}};
  if (request.max_tx_rate.value_or(0) != 0 && request.min_tx_rate.value_or(0) > *request.max_tx_rate) {
    throw Error(Code::invalid_configuration,
                fmt::format("'min_tx_rate' is {} and 'max_tx_rate' is {}: the least was wanted not to be above the largest",
                            *request.min_tx_rate, *request.max_tx_rate),
                "Both are in Mbit/s, and 0 is no limit.");
  }
  return request;
}

VfSettings asked_of_pf(const VfRequest& request, const std::optional<netlink::HardwareAddress>& mac, const VfSettings& now) {
  VfSettings asked{.mac = mac,
                   .vlan = request.vlan,
                   .rates = {},
                   .spoof_check = request.spoof_check,
                   .trust = request.trust,
                   .link_state = request.link_state,
                   .node_guid = request.guid,
                   .port_guid = request.guid};
  // An InfiniBand PF has GUIDs for its VFs, and no MACs.
  if (mac && now.mac && now.mac->bytes().size() != mac->bytes().size()) {
    asked.mac.reset();
  }
  if (request.min_tx_rate || request.max_tx_rate) {
    const auto present = now.rates.value_or(VfRates{});
    asked.rates =
        VfRates{.minimum = request.min_tx_rate.value_or(present.minimum), .maximum = request.max_tx_rate.value_or(present.maximum)};
  }
  return asked;
}

std::vector<VfSettings> differing_settings(const VfSettings& now, const VfSettings& wanted) {
  std::vector<VfSettings> all;
  for_each_member([&](auto member) {
    if (wanted.*member && now.*member && wanted.*member != now.*member) {
      all.emplace_back().*member = wanted.*member;
    }
  });
  return all;
}

VfSettings laid_over(const VfSettings& base, const VfSettings& wanted) {
  VfSettings whole = base;
  for_each_member([&](auto member) {
    if (wanted.*member) {
      whole.*member = wanted.*member;
    }
  });
  return whole;
}

std::string first_unreported(const VfSettings& now, const VfSettings& wanted) {
  std::string key;
  for_each_member([&](auto member) {
    if (key.empty() && wanted.*member && !(now.*member)) {
      VfSettings one;
      one.*member = wanted.*member;
      key = text_of_setting(one).key;
    }
  });
  return key;
}

VfSettingText text_of_setting(const VfSettings& setting) {
  if (setting.vlan) {
    return {"vlan", value_text(*setting.vlan)};
  }
  if (setting.mac) {
    return {"mac", setting.mac->text()};
  }
  if (setting.rates) {
    return {"min_tx_rate, max_tx_rate", fmt::format("{}, {} Mbit/s", setting.rates->minimum, setting.rates->maximum)};
  }
  if (setting.spoof_check) {
    return {"spoofchk", on_off(*setting.spoof_check)};
  }
  if (setting.trust) {
    return {"trust", on_off(*setting.trust)};
  }
  if (setting.link_state) {
    return {"link_state", value_text(*setting.link_state)};
  }
  return {"infinibandGUID",
          setting.node_guid ? guid_text(*setting.node_guid) + " (node)" : guid_text(setting.port_guid.value()) + " (port)"};
}

std::optional<std::string> first_difference(const VfSettings& now, const VfSettings& asked) {
  const auto differing = differing_settings(now, asked);
  if (differing.empty()) {
    return std::nullopt;
  }
  const auto shall = text_of_setting(differing.front());
  VfSettings present;
  for_each_member([&](auto member) {
    if (differing.front().*member) {
      present.*member = now.*member;
    }
  });
  return fmt::format("'{}' is {} and shall be {}", shall.key, text_of_setting(present).value, shall.value);
}

}  // namespace cni
