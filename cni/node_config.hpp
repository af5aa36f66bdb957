#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cni {

/// The node's own file, /etc/cni/fabric-nic.json, which NADs cannot override.
struct NodeConfig {
  std::string data_dir = "/var/lib/cni/fabric-nic";
  std::string log_dir = "/var/log";
  std::optional<std::vector<std::string>> allowed_selectors;  ///< of `deviceID`, `device`, `hwaddr`, `kernelpath`; nothing = all
  std::optional<std::vector<std::string>> allowed_devices;    ///< names or bus addresses, `*` and `?` as in a shell; nothing = all
  bool allow_in_use = true;                                   ///< whether NADs may say allowInUse

  bool operator==(const NodeConfig&) const = default;
};

/// Reads the content of the file. Throws Error: 6 when it is not JSON, 7 for an unknown key or a wrong value.
[[nodiscard]] NodeConfig parse_node_config(std::string_view text);

/// Reads the file, or gives the defaults when it is absent. Throws Error 5 when it is not a regular file of at most 64 KiB that root owns
/// and only root may write, 7 when its content is wrong.
[[nodiscard]] NodeConfig read_node_config(const std::string& path);

}  // namespace cni
