#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/environment.hpp"
#include "cni/log.hpp"
#include "cni/node_config.hpp"
#include "cni/result.hpp"
#include "cni/version.hpp"
#include "cni/vf_settings.hpp"
#include "netlink/address_types.hpp"

namespace cni {

/// How a configuration names the device. Several may be set; select.hpp says what happens then.
struct Selectors {
  std::optional<std::string> runtime_device_id;  ///< runtimeConfig.deviceID: wins over everything
  std::optional<std::string> device_id;          ///< deviceID or pciBusID, which Multus injects
  std::optional<std::string> device;             ///< name or altname
  std::optional<netlink::HardwareAddress> hwaddr;
  std::optional<std::string> kernel_path;
  std::optional<std::string> rdma_device;  ///< by the name of its RDMA device
};

enum class DefaultRoute { drop, keep };

enum class RdmaRequest {
  automatic,  ///< move it in exclusive mode, leave it in shared mode; never fails for it, but for its active_mtu where an MTU is asked for
  exclusive,  ///< it has to be moved
  shared,     ///< it has to be there, in shared mode
  off,
};

struct Waits {
  std::optional<std::chrono::milliseconds> carrier;  ///< not configured: none, or that of RDMA
  std::chrono::milliseconds gid{5000};
  std::chrono::milliseconds device{2000};
  std::chrono::milliseconds owner{5000};
};

/// What every verb needs to know of the configuration. DEL gets by with this.
struct NetworkConfig {
  std::string cni_version;                 ///< as given, empty when absent
  std::string name;                        ///< of the network
  std::string ipam_type;                   ///< empty = no IPAM
  Selectors selectors;                     ///< what could be read of them
  std::optional<std::string> prev_result;  ///< JSON text
  std::string raw;                         ///< stdin, unchanged, for IPAM
  std::optional<std::string> log_file;
  LogLevel log_level = LogLevel::info;
  RdmaRequest rdma = RdmaRequest::automatic;
};

struct SysctlSetting {
  std::string key;   ///< as configured, `net.ipv4.conf.IFNAME.arp_ignore`
  std::string path;  ///< below /proc/sys, `net/ipv4/conf/IFNAME/arp_ignore`; IFNAME stands for the interface and is kept here
  std::string value;

  bool operator==(const SysctlSetting&) const = default;
};

/// The whole configuration, validated, for ADD (and CHECK).
struct AttachConfig {
  Selectors selectors;
  std::optional<std::uint32_t> mtu;
  std::optional<netlink::HardwareAddress> mac;
  std::string mac_source;  ///< `mac`, `CNI_ARGS MAC`, `runtimeConfig.mac`, `args.cni.mac`: for messages
  std::optional<bool> promisc;
  std::optional<bool> allmulti;
  std::optional<std::uint32_t> tx_queue_length;
  std::vector<SysctlSetting> sysctls;
  VfRequest vf;
  RdmaRequest rdma = RdmaRequest::automatic;
  std::string rdma_name;               ///< in the pod; empty = keep
  std::optional<std::uint16_t> pkey;   ///< InfiniBand: for others to set
  bool ib_kubernetes_enabled = false;  ///< ib-kubernetes gives this network's VFs their GUIDs
  std::vector<netlink::IpPrefix> ips;  ///< with no IPAM: applied as they are
  bool gets_addresses = false;         ///< from IPAM or `ips`
  Dns dns;
  DefaultRoute default_route = DefaultRoute::drop;
  bool allow_in_use = false;
  Waits waits;
  std::string device_info_file;    ///< runtimeConfig.CNIDeviceInfoFile; empty when there is none
  std::vector<std::string> notes;  ///< for the log: keys that were accepted without meaning, a selector that lost
};

/// Reads stdin as far as every verb needs it. `text` is at most kMaximumInput bytes. Throws Error in the order of the specification's
/// library: 6 not JSON, not an object, or a `cniVersion` that is no string, 7 `name` missing or malformed. Keys are matched
/// case-insensitively, exact match first. Whatever else is wrong is as if absent: it is no reason to fail a DEL.
[[nodiscard]] NetworkConfig read_network_config(std::string text);

/// `auto`, `exclusive`, `shared` or `off`; nothing for any other word.
[[nodiscard]] std::optional<RdmaRequest> parse_rdma_request(std::string_view word);

/// Reads and validates all of it. Throws Error naming key, value and what to do: 2 for an unknown or unsupported key, 4 for malformed
/// CNI_ARGS, 7 for a wrong value.
[[nodiscard]] AttachConfig read_attach_config(const NetworkConfig& network, const std::string& cni_args);

/// Throws Error 2 naming the first key that no line of tuning's allowlist file matches (each line a regular expression, searched for in the
/// key as configured; blank lines and those that begin with `#` do not count), 5 for a line that is no regular expression. An absent file
/// allows everything.
void check_sysctl_allowlist(const std::vector<SysctlSetting>& sysctls, const std::string& allowlist_path);

inline constexpr std::size_t kMaximumInput = std::size_t{1} << 20U;

}  // namespace cni
