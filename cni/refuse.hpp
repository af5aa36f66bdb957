#pragma once

#include <span>

#include "cni/config.hpp"
#include "cni/record.hpp"
#include "cni/select.hpp"
#include "cni/state.hpp"
#include "netlink/link.hpp"

namespace cni {

/// Refuses a device that links alone show to be no free NIC: a port of a bond, bridge or team, one that others sit on, a switchdev
/// representor, a device that cannot leave its namespace. Throws Error 100 that names what is in the way. `all` are the links of the host.
void refuse_entangled(const netlink::Link& link, std::span<const netlink::Link> all);

/// Refuses a NIC that the host itself uses: one that carries a default route (never to be taken), or permanent global addresses (unless
/// `allow_in_use`). Throws Error 100, netlink::Error.
void refuse_in_use(const netlink::Link& link, const State& state, bool allow_in_use, netlink::Socket& host);

/// Refuses a PF any of whose VFs is recorded, away or bound to a userspace driver, and one with idle VFs unless `allow_in_use`. Throws
/// Error 100 naming the VF.
void refuse_busy_physical_function(const netlink::Link& link, std::span<const netlink::Link> all, bool allow_in_use,
                                   const RecordStore& store, const netlink::Roots& roots);

/// Refuses what the node's own file does not allow NADs to do. Throws Error 100.
void refuse_by_node(const NodeConfig& node, const std::vector<Selector>& selectors, const netlink::Link& link, bool allow_in_use);

}  // namespace cni
