#pragma once

#include <span>
#include <string>
#include <vector>

#include "cni/claim.hpp"
#include "cni/config.hpp"
#include "cni/context.hpp"
#include "cni/lock.hpp"
#include "cni/record.hpp"
#include "cni/state.hpp"

namespace cni {

/// The lock of the PF that the VF belongs to: it is the one under which the PF itself would be taken. It comes after the VF's own, and is
/// held while what is read on the PF decides what is set there. Throws Error 11 when it does not come within some seconds, or by the
/// deadline.
[[nodiscard]] DeviceLock lock_physical_function(const netlink::VfId& id, const std::string& purpose, const Deadline& deadline);

/// Another function that has a MAC, or a GUID.
struct MacHolder {
  std::string text;  ///< `VF 2 (0000:01:10.4) of PF 'ens3f0'`, `PF 'ens3f0' itself`
  std::string key;   ///< of its record, if it has one
};

/// Who has the MAC among the PF and its other VFs: by the PF's own list, and by the netdevs that are in the host.
[[nodiscard]] std::vector<MacHolder> holders_of_mac(const netlink::HardwareAddress& mac, const Administration& administration,
                                                    const netlink::VfList& list, std::span<const netlink::BusAddress> functions,
                                                    std::span<const netlink::Link> host_links);
/// The same, looked up now, and by what the records of other attachments have asked for, which a VF that is being reset does not hide.
[[nodiscard]] std::vector<MacHolder> holders_of_mac(const netlink::HardwareAddress& mac, const netlink::DeviceId& device,
                                                    const Administration& administration, const RecordStore& store, Places& places);

/// Which other VFs of the PF have the GUID, of their node or their port, by the PF's own list.
[[nodiscard]] std::vector<MacHolder> holders_of_guid(Guid guid, const Administration& administration, const netlink::VfList& list,
                                                     std::span<const netlink::BusAddress> functions);
/// The same, looked up now.
[[nodiscard]] std::vector<MacHolder> holders_of_guid(Guid guid, const Administration& administration, Places& places);

/// Whether the PF says all that has to be known for what is asked of it: of the VF alone, or for a MAC or GUID of all of its VFs.
[[nodiscard]] bool is_answer_whole(const Administration& administration, bool of_all, Places& places);

/// Refuses, while nothing is touched, what cannot be set for the claimed device or would fail in silence: settings of a VF for a device
/// that is none, those that the driver does not report, a PF that cannot be asked, a MAC or GUID that another function of the PF has, an
/// MTU above the PF's; what InfiniBand cannot have; for a device without a netdev, what only a netdev has. The caller holds the PF's lock,
/// if there is a PF. Throws Error 7, 100, 101 and 102.
void inspect_vf(const Claim& claim, const AttachConfig& config, const RecordStore& store, Places& places);

/// A MAC that another function of the PF than this device has is refused. Throws Error 100 naming it, and its owner.
void refuse_taken_mac(const netlink::HardwareAddress& mac, const netlink::DeviceId& device, const Administration& administration,
                      const RecordStore& store, Places& places);

/// The same for a GUID. Throws Error 100 naming the VF that has it.
void refuse_taken_guid(Guid guid, const Administration& administration, Places& places);

/// Compares what the PF has for the VF with what was asked. Throws Error 102 naming the first setting that differs.
void verify_vf(const netlink::VfSettings& asked, const netlink::DeviceId& device, Places& places);

}  // namespace cni
