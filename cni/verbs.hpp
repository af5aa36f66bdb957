#pragma once

#include <optional>
#include <string>

#include "cni/context.hpp"
#include "netlink/net_ns.hpp"

namespace cni {

// The verbs of the specification, each for a call whose variables and stdin are checked as far as every verb needs it. They throw Error
// (and netlink::Error, which plugin.cpp turns into one).

[[nodiscard]] Outcome add(Context& context);
[[nodiscard]] Outcome del(Context& context);
[[nodiscard]] Outcome check(Context& context);
[[nodiscard]] Outcome status(Context& context);

/// The namespace at CNI_NETNS. Throws Error 8 when there is none, or when it is the one this plugin runs in: CNI_NETNS_OVERRIDE
/// cannot help a plugin that moves devices.
[[nodiscard]] netlink::NetNs open_pod_net_ns(const Context& context, const netlink::NetNs& host);

/// The attachment this call speaks of. CNI_ARGS that cannot be read name no pod.
[[nodiscard]] Owner owner_of(const Context& context);

}  // namespace cni
