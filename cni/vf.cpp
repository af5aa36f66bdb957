#include "cni/vf.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if_arp.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cni/error.hpp"
#include "cni/infiniband.hpp"
#include "cni/select.hpp"
#include "cni/vf_settings.hpp"

namespace cni {

namespace {

// It is held for as long as a few requests take, on a node where many pods start for as many times that.
constexpr std::chrono::milliseconds kPfLockTime{10'000};

std::string vf_text(int number, const netlink::BusAddress& address) {
  return fmt::format("VF {} ({})", number, address.address);
}

MacHolder holder(int number, const netlink::BusAddress& function, const Administration& administration) {
  return {.text = fmt::format("{} of PF '{}'", vf_text(number, function), administration.pf.name),
          .key = netlink::DeviceId::on_bus(function).key()};
}

/// What a configuration says that a PF alone can do; empty when it says nothing of the kind.
std::string keys_for_pf(const AttachConfig& config, bool has_no_netdev) {
  const auto& request = config.vf;
  std::vector<std::string_view> keys;
  const auto add = [&](bool is_set, std::string_view key) {
    if (is_set) {
      keys.push_back(key);
    }
  };
  add(request.vlan.has_value(), "'vlan'");
  add(request.min_tx_rate.has_value(), "'min_tx_rate'");
  add(request.max_tx_rate.has_value(), "'max_tx_rate'");
  add(request.spoof_check.has_value(), "'spoofchk'");
  add(request.trust.has_value(), "'trust'");
  add(request.link_state.has_value(), "'link_state'");
  add(request.guid.has_value(), "'infinibandGUID'");
  add(has_no_netdev && config.mac, "'mac'");
  add(has_no_netdev && config.mtu, "'mtu'");
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// A device without a PF in the host: no VF at all, or one whose PF is elsewhere.
void refuse_without_pf(const Claim& claim, const AttachConfig& config, const netlink::Roots& roots) {
  const auto id = claim.device.parent ? netlink::find_vf_id(*claim.device.parent, roots) : std::nullopt;
  if (id) {
    const auto& pf = id->physical_function;
    if (const auto holder = find_holder(pf, roots); !holder.empty()) {
      throw Error(Code::device_cannot_be_taken,
                  fmt::format("'{}' is VF {} of PF {}, whose network interface is in another network namespace, held by {}",
                              claim.link.name, id->number, pf.address, holder),
                  "A VF is administered on its PF: bring the PF back into the host.");
    }
  }
  if (claim.before.vf) {
    throw Error(Code::try_again_later,
                fmt::format("'{}' still has what its PF had set for an earlier attachment, and the PF has no network interface in the host",
                            claim.link.name),
                "Bring the PF back: until then nobody can set the VF back.");
  }
  const auto keys = keys_for_pf(config, !claim.has_netdev());
  if (keys.empty()) {
    return;
  }
  if (id) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("{} cannot be set: '{}' is VF {} of PF {}, which has no network interface in the host", keys, claim.link.name,
                            id->number, id->physical_function.address),
                "Bind the PF to its network driver, or leave these keys out.");
  }
  throw Error(Code::device_cannot_be_taken, fmt::format("{} cannot be set: '{}' is no VF of a PF in this host", keys, claim.link.name),
              "These keys are for SR-IOV VFs: name one, or leave them out.");
}

/// What the PF does not say can be neither verified nor put back: of the VF what is to be set or is not as it was before an earlier
/// attachment, for a MAC of all its VFs.
void refuse_unreported(const Claim& claim, const AttachConfig& config, const Administration& administration, Places& places) {
  const auto text = vf_text(administration.id.number, *claim.device.parent);
  const bool asks = !config.vf.is_empty() || config.mac;
  const bool asks_for_address = config.mac || config.vf.guid;
  const bool is_silent = !claim.now.vf && (asks || claim.before.vf);
  if (is_silent || (asks_for_address && !is_answer_whole(administration, true, places))) {
    throw Error(Code::setting_refused,
                fmt::format("what PF '{}' says of its VFs lacks {}: its settings cannot be read, and so not be set and put back",
                            administration.pf.name, is_silent ? text : "some of them, and so who has which MAC or GUID"),
                "The PF has too many VFs for one answer of the kernel (64 KiB), or a VF is being reset. Use fewer VFs, or leave the VF's "
                "settings out.");
  }
  if (!asks) {
    return;
  }
  const auto asked = asked_of_pf(config.vf, config.mac, *claim.before.vf);
  if (config.mac && !asked.mac && !claim.has_netdev()) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("'mac' cannot be set: PF '{}' has other addresses for its VFs", administration.pf.name), "Leave 'mac' out.");
  }
  if (const auto key = first_unreported(*claim.before.vf, asked); !key.empty()) {
    throw Error(
        Code::setting_refused,
        fmt::format("the driver of PF '{}' does not report '{}' of {}: it cannot be set and verified", administration.pf.name, key, text),
        fmt::format("Leave '{}' out.", key));
  }
  if (asked.rates && asked.rates->maximum != 0 && asked.rates->minimum > asked.rates->maximum) {
    throw Error(Code::invalid_configuration,
                fmt::format("'min_tx_rate' would be {} and 'max_tx_rate' {} for {} of PF '{}': the least was wanted not to be above the "
                            "largest",
                            asked.rates->minimum, asked.rates->maximum, text, administration.pf.name),
                "The one that is not configured stays as it is; set both.");
  }
}

void inspect_infiniband(const Claim& claim, const AttachConfig& config, const std::optional<Administration>& administration) {
  const bool has_netdev = claim.userspace_driver.empty();
  if (!administration && !has_netdev) {
    return;  // nothing says what it is
  }
  const auto hardware_type = administration ? administration->pf.hardware_type : claim.link.hardware_type;
  refuse_for_infiniband(config, {.name = claim.link.name,
                                 .is_infiniband = hardware_type == ARPHRD_INFINIBAND,
                                 .is_vf = administration.has_value(),
                                 .effective = has_netdev ? guid_of(claim.now.mac) : std::nullopt});
}

void refuse_mtu_above_pf(std::uint32_t mtu, const netlink::Link& pf) {
  if (pf.mtu && mtu > *pf.mtu) {
    throw Error(Code::verification_failed,
                fmt::format("an MTU of {} is above the {} of the VF's PF '{}': the kernel would accept it, and the PF drop the frames", mtu,
                            *pf.mtu, pf.name),
                fmt::format("Raise the PF's MTU (ip link set {} mtu {}, or where the node's network is configured), or set 'mtu' to {} at "
                            "most.",
                            pf.name, mtu, *pf.mtu));
  }
}

void refuse_netdev_settings(const Claim& claim, const AttachConfig& config) {
  const std::string_view key = claim.is_rdma_only && config.mtu ? "mtu"
                               : config.promisc                 ? "promisc"
                               : config.allmulti                ? "allmulti"
                               : config.tx_queue_length         ? "txQLen"
                               : !config.sysctls.empty()        ? "sysctl"
                                                                : "";
  if (!key.empty()) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("'{}' cannot be set: {} {} and has no network interface", key, claim.device.text(),
                            claim.is_rdma_only ? "is an RDMA device alone"
                                               : fmt::format("is bound to the userspace driver '{}'", claim.userspace_driver)),
                fmt::format("Leave '{}' out, or bind the device to its network driver.", key));
  }
}

/// What has no netdev has no addresses that the kernel knows of; a program that drives a device by itself is told them all the same.
void refuse_addresses(const Claim& claim, const AttachConfig& config) {
  if (claim.is_rdma_only && config.gets_addresses) {
    throw Error(
        Code::device_cannot_be_taken,
        fmt::format("'ipam' and 'ips' cannot be used: {} is an RDMA device alone and has no network interface", claim.device.text()),
        "Leave them out, or load the driver that makes a network interface of it (ib_ipoib).");
  }
  if (claim.is_rdma_only && (config.rdma == RdmaRequest::off || claim.now.rdma.empty())) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("{} has no network interface, and its RDMA device is not to be used", claim.device.text()),
                "Leave 'rdma' out, or name another device.");
  }
}

}  // namespace

DeviceLock lock_physical_function(const netlink::VfId& id, const std::string& purpose, const Deadline& deadline) {
  return DeviceLock::acquire(netlink::DeviceId::on_bus(id.physical_function).key(), purpose, Deadline{deadline.at_most(kPfLockTime)});
}

std::vector<MacHolder> holders_of_mac(const netlink::HardwareAddress& mac, const Administration& administration,
                                      const netlink::VfList& list, std::span<const netlink::BusAddress> functions,
                                      std::span<const netlink::Link> host_links) {
  std::vector<MacHolder> holders;
  if (administration.pf.address == mac) {
    holders.push_back({.text = fmt::format("PF '{}' itself", administration.pf.name),
                       .key = netlink::DeviceId::on_bus(administration.id.physical_function).key()});
  }
  for (std::size_t at = 0; at < functions.size(); ++at) {
    const int number = static_cast<int>(at);
    const auto& function = functions[at];
    const auto found = list.vfs.find(number);
    const bool by_pf = found != list.vfs.end() && found->second.mac == mac;
    const bool by_itself =
        std::ranges::any_of(host_links, [&](const netlink::Link& link) { return link.parent == function && link.address == mac; });
    if (number != administration.id.number && (by_pf || by_itself)) {
      holders.push_back(holder(number, function, administration));
    }
  }
  return holders;
}

std::vector<MacHolder> holders_of_mac(const netlink::HardwareAddress& mac, const netlink::DeviceId& device,
                                      const Administration& administration, const RecordStore& store, Places& places) {
  const auto functions = netlink::virtual_functions(administration.id.physical_function, places.roots);
  auto holders =
      holders_of_mac(mac, administration, netlink::list_vfs(places.host, administration.pf.index), functions, netlink::links(places.host));
  for (const auto& found : store.all(mac.text())) {
    const auto* record = std::get_if<Record>(&found);
    if (record == nullptr || record->asked_vf.mac != mac || record->device.key() == device.key()) {
      continue;
    }
    const auto function = std::ranges::find(functions, record->device.parent);
    if (function != functions.end() && std::ranges::find(holders, record->device.key(), &MacHolder::key) == holders.end()) {
      holders.push_back(holder(static_cast<int>(function - functions.begin()), *function, administration));
    }
  }
  return holders;
}

std::vector<MacHolder> holders_of_guid(Guid guid, const Administration& administration, const netlink::VfList& list,
                                       std::span<const netlink::BusAddress> functions) {
  std::vector<MacHolder> holders;
  for (const auto& [number, settings] : list.vfs) {
    const bool has_it = settings.node_guid == guid || settings.port_guid == guid;
    if (has_it && number != administration.id.number && std::cmp_less(number, functions.size())) {
      holders.push_back(holder(number, functions[static_cast<std::size_t>(number)], administration));
    }
  }
  return holders;
}

std::vector<MacHolder> holders_of_guid(Guid guid, const Administration& administration, Places& places) {
  return holders_of_guid(guid, administration, netlink::list_vfs(places.host, administration.pf.index),
                         netlink::virtual_functions(administration.id.physical_function, places.roots));
}

bool is_answer_whole(const Administration& administration, bool of_all, Places& places) {
  const auto list = netlink::list_vfs(places.host, administration.pf.index);
  return of_all ? list.is_complete : list.vfs.contains(administration.id.number);
}

void refuse_taken_mac(const netlink::HardwareAddress& mac, const netlink::DeviceId& device, const Administration& administration,
                      const RecordStore& store, Places& places) {
  const auto holders = holders_of_mac(mac, device, administration, store, places);
  if (holders.empty()) {
    return;
  }
  const auto found = store.find(holders.front().key);
  const auto* record = found ? std::get_if<Record>(&*found) : nullptr;
  throw Error(Code::device_cannot_be_taken,
              fmt::format("the MAC {} is that of {} already{}", mac.text(), holders.front().text,
                          record != nullptr ? ", which belongs to " + record->owner.text() : ""),
              "Two functions of one PF with one MAC would take each other's packets. Ask for another MAC, or set that one's back.");
}

void refuse_taken_guid(Guid guid, const Administration& administration, Places& places) {
  const auto holders = holders_of_guid(guid, administration, places);
  if (!holders.empty()) {
    throw Error(Code::device_cannot_be_taken, fmt::format("the GUID {} is that of {} already", guid_text(guid), holders.front().text),
                "A subnet has each GUID once. Ask for another one, or set that one's back.");
  }
}

void inspect_vf(const Claim& claim, const AttachConfig& config, const RecordStore& store, Places& places) {
  if (!claim.has_netdev()) {
    refuse_netdev_settings(claim, config);
    refuse_addresses(claim, config);
  }
  const auto administration = claim.device.parent ? find_administration(*claim.device.parent, places) : std::nullopt;
  inspect_infiniband(claim, config, administration);
  if (!administration) {
    refuse_without_pf(claim, config, places.roots);
    return;
  }
  refuse_unreported(claim, config, *administration, places);
  if (const auto mtu = config.mtu ? config.mtu : claim.before.mtu) {
    refuse_mtu_above_pf(*mtu, administration->pf);
  }
  if (config.mac) {
    refuse_taken_mac(*config.mac, claim.device, *administration, store, places);
  }
  if (config.vf.guid) {
    refuse_taken_guid(*config.vf.guid, *administration, places);
  }
}

void verify_vf(const netlink::VfSettings& asked, const netlink::DeviceId& device, Places& places) {
  if (asked.is_empty()) {
    return;
  }
  const auto administration = find_administration(*device.parent, places);
  const auto settings = administration ? read_vf(*administration, places) : std::nullopt;
  if (!settings) {
    throw Error(Code::verification_failed, fmt::format("{}: its PF does not say what is set for it{}", device.text(),
                                                       administration ? "" : ", and has no network interface in the host"));
  }
  if (const auto difference = first_difference(*settings, asked)) {
    throw Error(Code::verification_failed,
                fmt::format("VF {} of PF '{}' ({}): {}", administration->id.number, administration->pf.name, device.text(), *difference),
                "The driver accepted the setting and something changed it since, or it did not keep it.");
  }
}

}  // namespace cni
