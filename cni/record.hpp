#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cni/state.hpp"
#include "netlink/device_id.hpp"

namespace cni {

/// Who has, or is taking, a device.
struct Owner {
  std::string network;
  std::string container_id;
  std::string interface_name;
  std::string pod;  ///< `namespace/name` from CNI_ARGS; empty where the runtime sent none
  std::string net_ns_path;
  std::uint64_t net_ns_cookie = 0;
  std::string since;  ///< RFC 3339, UTC

  /// For messages: `pod 'default/job-0' (container 1234, interface net1, since ...)`.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_same_attachment(const Owner& other) const {
    return network == other.network && container_id == other.container_id && interface_name == other.interface_name;
  }
};

/// What an IPAM plugin was asked on ADD, so that DEL can be asked by anybody later.
struct IpamRequest {
  std::string type;
  std::string container_id;
  std::string interface_name;
  std::string net_ns_path;
  std::string args;   ///< CNI_ARGS
  std::string path;   ///< CNI_PATH
  std::string input;  ///< stdin
};

/// What became of the function's RDMA devices.
enum class RdmaUse {
  none,    ///< it has none, or the configuration leaves them alone
  left,    ///< they could not be moved, and stayed in the host: the pod cannot use them
  moved,   ///< into the pod
  shared,  ///< they are everybody's: the mode of the node is shared
};

struct RdmaAttachment {
  RdmaUse use = RdmaUse::none;
  bool is_required = false;        ///< it has to work, or there is no attachment
  bool is_mtu_required = false;    ///< its active_mtu has to be as large as the netdev's MTU allows
  std::vector<RdmaState> devices;  ///< as the pod shall have them

  bool operator==(const RdmaAttachment&) const = default;
};

/// What the device was and who is taking it, written before the first change to it. One file a device, so that two owners cannot be.
struct Record {
  Owner owner;
  std::uint64_t home_cookie = 0;  ///< of the network namespace that the device comes home to
  netlink::DeviceId device;
  netlink::Incarnation incarnation;
  State before;
  netlink::VfSettings asked_vf;  ///< what the configuration asked of a VF's PF
  RdmaAttachment rdma;
  std::string userspace_driver;  ///< that the device was bound to, and then it has no netdev; empty otherwise
  bool is_rdma_only = false;     ///< a network driver has it, and it has no netdev: its RDMA devices are all there is
  /// That a VF which gets a GUID is bound to, and that is bound anew for it; empty otherwise. While that goes on, no `driver_inode` is
  /// known.
  std::string bound_driver;
  std::optional<IpamRequest> ipam;
  std::string device_info_file;  ///< that this attachment wrote; empty when it wrote none
  bool completed = false;
  std::string result;  ///< what ADD answered, in the newest version; once completed

  [[nodiscard]] bool has_netdev() const { return userspace_driver.empty() && !is_rdma_only; }
};

/// The record as JSON text, and back. parse_record throws Error 6 for anything that is not a whole record of a format that it knows: this
/// one, and those of the releases before.
[[nodiscard]] std::string print_record(const Record& record);
[[nodiscard]] Record parse_record(std::string_view text);
[[nodiscard]] std::string print_ipam_request(const IpamRequest& request);
[[nodiscard]] IpamRequest parse_ipam_request(std::string_view text);

/// The node's records: DATA_DIR/devices/KEY.json, and in DATA_DIR/owed/ the IPAM DELs that failed and are to be done again. Only the holder
/// of the device's lock writes or removes a record. Throws netlink::Error when the file system refuses.
class RecordStore {
 public:
  explicit RecordStore(std::string data_dir) : data_dir_(std::move(data_dir)) {}

  struct Unreadable {
    std::string key;
    std::string reason;
  };
  using Found = std::variant<Record, Unreadable>;

  [[nodiscard]] std::optional<Found> find(const std::string& key) const;
  /// Which devices have a record.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// Every record whose file contains `text`; the empty text is in all of them.
  [[nodiscard]] std::vector<Found> all(std::string_view text = {}) const;
  /// Those of one attachment that can be read: one, but for what its DEL could not restore whole.
  [[nodiscard]] std::vector<Record> of_attachment(const Owner& owner) const;
  /// Whether a netdev of this bus device is on record that is one of several.
  [[nodiscard]] bool has_sibling_records(const netlink::BusAddress& parent) const;
  void write(const Record& record);
  void remove(const netlink::DeviceId& device);
  /// Keeps an unreadable record under another name, out of the way; gives the new path.
  std::string set_aside(const std::string& key);

  [[nodiscard]] std::optional<IpamRequest> owed(const Owner& owner) const;
  /// On the disk before it returns: the machine may be on its way down.
  void write_owed(const Owner& owner, const IpamRequest& request);
  void remove_owed(const Owner& owner);

  /// The file of the debt that was written or tried longest ago.
  [[nodiscard]] std::optional<std::string> oldest_debt() const;
  /// Puts the debt behind all others, and reads it. Throws Error 6.
  [[nodiscard]] IpamRequest take_up(const std::string& debt) const;
  void cancel(const std::string& debt);

  [[nodiscard]] const std::string& data_dir() const { return data_dir_; }

 private:
  [[nodiscard]] Found parse(const std::string& key, std::string content) const;
  [[nodiscard]] std::string record_path(const std::string& key) const;
  [[nodiscard]] std::string owed_path(const Owner& owner) const;

  std::string data_dir_;
  // Every verb reads its record twice, before and behind the lock, and most often it is the same.
  mutable std::string last_content_;
  mutable std::optional<Record> last_record_;
};

}  // namespace cni
