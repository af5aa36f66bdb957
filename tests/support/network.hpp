#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace support {

using Json = nlohmann::json;

/// What `ip -j COMMAND` prints, in the sandbox's own namespace or with `-n NAME` in another.
[[nodiscard]] Json ip_json(const std::string& command);
/// The one link that `ip -j -d link show` gives, as the kernel describes it; fails the test when there is none.
[[nodiscard]] Json show_link(const std::string& interface, const std::string& net_ns = {});
[[nodiscard]] bool has_link(const std::string& interface, const std::string& net_ns = {});
/// Names of all links, sorted; lo is left out.
[[nodiscard]] std::vector<std::string> link_names(const std::string& net_ns = {});
/// Global addresses with their prefix lengths, `10.0.0.5/24`, sorted.
[[nodiscard]] std::vector<std::string> addresses(const std::string& interface, const std::string& net_ns = {});
/// The value of /proc/sys/PATH in a namespace.
[[nodiscard]] std::string sysctl(const std::string& path, const std::string& net_ns = {});
[[nodiscard]] bool has_flag(const Json& link, const std::string& flag);

/// What has to come back when a NIC comes home, by name: link attributes, addresses, routes, per-interface sysctls.
using Snapshot = std::map<std::string, std::string>;
[[nodiscard]] Snapshot snapshot(const std::string& interface, const std::string& net_ns = {});
/// One line for each difference, `mtu: 1500 -> 9000`; empty when there is none.
[[nodiscard]] std::string changes(const Snapshot& before, const Snapshot& after);

/// Loads an XDP program that lets every packet pass and pins it at /run/bpf/NAME, for `ip link set ... xdp pinned`.
void pin_xdp_program(const std::string& name);

}  // namespace support
