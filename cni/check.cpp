#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cni/attach.hpp"
#include "cni/error.hpp"
#include "cni/ipam.hpp"
#include "cni/verbs.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kIpamTime{30'000};

Record find_record(const Context& context, const Owner& owner) {
  auto records = context.store.of_attachment(owner);
  if (!records.empty()) {
    return std::move(records.front());
  }
  throw Error(
      Code::unknown_container,
      fmt::format("nothing is attached to container '{}' as '{}' of network '{}'", owner.container_id, owner.interface_name, owner.network),
      "ADD did not succeed, or DEL came since.");
}

/// Our interface in the previous result, which wins over the record: a chained plugin may have changed it after us.
State expected(const Context& context, const Owner& owner) {
  if (!context.network.prev_result) {
    throw Error(Code::invalid_configuration, "CHECK needs the result of ADD as 'prevResult', and there is none");
  }
  const auto previous = parse_result(*context.network.prev_result, context.version, "prevResult");
  const auto ours = std::ranges::find_if(previous.interfaces, [&](const ResultInterface& interface) {
    return interface.name == owner.interface_name && !interface.sandbox.empty();
  });
  if (ours == previous.interfaces.end()) {
    throw Error(Code::verification_failed, fmt::format("prevResult has no interface '{}' in a sandbox", owner.interface_name));
  }
  return state_in_result(previous, static_cast<std::size_t>(ours - previous.interfaces.begin()));
}

}  // namespace

Outcome check(Context& context) {
  const auto owner = owner_of(context);
  auto host = netlink::NetNs::current();
  auto pod = open_pod_net_ns(context, host);
  const auto wanted = expected(context, owner);
  const auto record = find_record(context, owner);
  if (pod.cookie() != record.owner.net_ns_cookie) {
    throw Error(Code::verification_failed, fmt::format("CNI_NETNS '{}' is not the namespace that {} was attached to",
                                                       context.environment.net_ns, record.device.text()));
  }
  Places places{std::move(host), std::move(pod), context.roots};
  verify_recorded(wanted, record, places, context);
  if (!context.network.ipam_type.empty()) {
    Ipam{context.ipam_request(), std::nullopt, context.log}.check(context.deadline.at_most(kIpamTime));
  }
  return {};
}

}  // namespace cni
