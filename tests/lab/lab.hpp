#pragma once

#include <array>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "support/network.hpp"
#include "support/plugin.hpp"
#include "support/process.hpp"

/// What tests in the lab's machine build on: two cards whose virtual functions and RDMA devices come and go. The machine is the host.
namespace lab {

using support::Json;

/// A PCI function of the machine: card 1 or 2, and the number of its virtual function, where it is one.
struct Function {
  int card = 1;
  std::optional<int> vf;

  /// `0000:01:10.2`
  [[nodiscard]] std::string address() const;
  /// What its netdev is called in the host; empty when it has none there.
  [[nodiscard]] std::string netdev() const;
  /// What its RDMA device is called (the first, where there are several); empty when the host sees none.
  [[nodiscard]] std::string rdma_device() const;
  /// All of them, sorted.
  [[nodiscard]] std::vector<std::string> rdma_devices() const;
  /// The numbers (`231:192`) of what programs open of its RDMA devices, by the devices' names, in whichever namespaces they are.
  [[nodiscard]] std::map<std::string, std::string> char_devices() const;
  [[nodiscard]] std::string sysfs() const { return "/sys/bus/pci/devices/" + address(); }
  auto operator<=>(const Function&) const = default;
};

[[nodiscard]] inline Function pf(int card) {
  return {.card = card, .vf = {}};
}
[[nodiscard]] inline Function vf(int card, int number) {
  return {.card = card, .vf = number};
}

struct Card {
  int vfs = 0;  ///< up to 7
  int mtu = 1500;

  bool operator==(const Card&) const = default;
};

enum class RdmaMode { shared, exclusive };

/// A test HCA: an RDMA device of a function. What its options are is said in lab_hca.c.
struct Hca {
  // NOLINTNEXTLINE(google-explicit-constructor): most have neither name nor options
  Hca(Function of, std::string its_name = {}, std::string its_options = {})
      : function(of), name(std::move(its_name)), options(std::move(its_options)) {}

  Function function;
  std::string name;     ///< empty: the next free mlx5_N
  std::string options;  ///< `state=DOWN mtu=1024`
};

/// What a scenario starts from.
struct Layout {
  std::array<Card, 2> cards = {};  ///< both are up and have carrier
  RdmaMode mode = RdmaMode::shared;
  std::vector<Hca> hcas = {};       ///< move with nothing and survive every move
  std::vector<Function> rxes = {};  ///< have an rxe device, with real GIDs and traffic, which a move of the netdev ends
};

/// What most tests start from. What they share costs nothing: see Scenario.
extern const Layout kLayout;
/// The same in exclusive mode, and with a test HCA of the second card: mlx5_0 and mlx5_1 are those of VFs, mlx5_2 is a PF's.
extern const Layout kExclusive;

/// All that a test could leave behind, by what it is.
[[nodiscard]] std::map<std::string, std::string> look_at_machine();
/// Checks that the machine is as it was, but for its namespaces, and that no trace of an attachment is left.
void expect_as(std::map<std::string, std::string> before, std::source_location where = std::source_location::current());

/// The machine in a layout. What is so already stays: making virtual functions takes seconds. At its end the machine has to be as it was at
/// its beginning, which is checked.
class Scenario {
 public:
  explicit Scenario(const Layout& layout);
  Scenario(const Scenario&) = delete;
  Scenario& operator=(const Scenario&) = delete;
  Scenario(Scenario&&) = delete;
  Scenario& operator=(Scenario&&) = delete;
  ~Scenario();

  /// Takes the virtual functions of a card away, or makes them anew: the same addresses, other devices. From then on the scenario's end is
  /// checked for the rest of the machine.
  void make_vfs_anew(int card);
  void remove_vfs(int card);
  /// The function loses its driver, and gets it, or another, again.
  void unbind(const Function& function);
  void bind(const Function& function, const std::string& driver);
  /// The test ends here, and is called again when the machine has been started anew; what is left then is no record.
  void restart();

 private:
  Layout layout_;
  std::array<bool, 2> are_vfs_made_anew_ = {};
  bool ends_with_restart_ = false;
  std::map<std::string, std::string> before_;
};

/// A network namespace to stand for a pod, at /run/netns/NAME.
class Pod {
 public:
  explicit Pod(std::string name = "pod");
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;
  Pod(Pod&&) = delete;
  Pod& operator=(Pod&&) = delete;
  ~Pod() { destroy(); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string path() const { return "/run/netns/" + name_; }
  void destroy();

 private:
  std::string name_;
};

/// A NIC that its host has set in every way that a record holds: name, altnames, alias, MTU, MAC, up, promisc, allmulti, queue length,
/// sysctls. As it was before, at its end.
class Configured {
 public:
  explicit Configured(const Function& function);
  Configured(const Configured&) = delete;
  Configured& operator=(const Configured&) = delete;
  Configured(Configured&&) = delete;
  Configured& operator=(Configured&&) = delete;
  ~Configured();

  /// Of the NIC as it was set.
  [[nodiscard]] const support::Snapshot& snapshot() const { return snapshot_; }
  /// Checks that the NIC is in the host, just as it was set.
  void expect_home(std::source_location where = std::source_location::current()) const;
  /// The test has made another device of the function, which needs no clearing.
  void forget() { is_forgotten_ = true; }

  static constexpr const char* kName = "rail0";

 private:
  Function function_;
  std::string first_name_;
  std::string first_mac_;
  std::string first_mtu_;
  std::map<std::string, std::string> first_sysctls_;
  support::Snapshot snapshot_;
  Json link_;
  bool is_forgotten_ = false;
};

/// What the PF of a VF says of it, as `ip` prints it.
[[nodiscard]] Json vf_settings(const Function& function);
/// All of what `ip` prints of a PF, its VFs included.
[[nodiscard]] std::string pf_text(int card);

/// What a PF insists on after it was told the MAC of a VF, and what it does not say, is taken away again at its end: the VF may choose its
/// MAC as before, and has the one it had.
class OwnMac {
 public:
  explicit OwnMac(const Function& function);
  OwnMac(const OwnMac&) = delete;
  OwnMac& operator=(const OwnMac&) = delete;
  OwnMac(OwnMac&&) = delete;
  OwnMac& operator=(OwnMac&&) = delete;
  ~OwnMac();

  [[nodiscard]] const std::string& mac() const { return mac_; }

 private:
  Function function_;
  std::string mac_;
};

/// Makes and destroys test HCAs, and sets what they do from now on (`state=INIT`). Without a name all of the function's are meant; a name
/// is that of its creation.
void create_hca(const Hca& hca);
void destroy_hca(const Function& function, const std::string& name = {});
void set_hca(const Function& function, const std::string& options, const std::string& name = {});

/// A test HCA beside those of the layout, gone at its end.
class AddedHca {
 public:
  explicit AddedHca(Hca hca) : hca_(std::move(hca)) { create_hca(hca_); }
  AddedHca(const AddedHca&) = delete;
  AddedHca& operator=(const AddedHca&) = delete;
  AddedHca(AddedHca&&) = delete;
  AddedHca& operator=(AddedHca&&) = delete;
  ~AddedHca() { leave(); }

  void leave();

 private:
  Hca hca_;
  bool is_there_ = true;
};

/// Linux 7 lets rxe devices move and work in any namespace, and RDMA devices in several have one name; before, neither is so.
[[nodiscard]] bool is_linux_6();

/// The names of the RDMA devices that a namespace sees, sorted; of the host without a name.
[[nodiscard]] std::vector<std::string> rdma_devices(const std::string& net_ns = {});
/// The first port of a device as `rdma link` shows it in a namespace; null when it is not there.
[[nodiscard]] Json rdma_port(const std::string& device, const std::string& net_ns = {});
/// What `ibv_devinfo -v` says of a device in a namespace.
[[nodiscard]] std::string verbs_text(const std::string& device, const std::string& net_ns);

/// An attachment of the function, which a device plugin chose.
[[nodiscard]] support::Attachment attachment(const Function& function, const Pod& pod, const Json& keys = Json::object());
/// The keys of an attachment with this address, `10.7.0.5/24`.
[[nodiscard]] Json with_address(const std::string& address);
/// The keys of an attachment with an MTU of 9000 and an address of host-local's; the addresses that it has given and not got back.
[[nodiscard]] Json full_size_with_address();
[[nodiscard]] std::vector<std::string> reserved_addresses();

/// Waits for the netdev of a function to be in the host.
void wait_for_netdev(const Function& function);
void wait_for_carrier(const std::string& interface, const std::string& net_ns = {});

/// Whether the machine has been started anew for this test, and the files under /var/lib/cni are those from before.
[[nodiscard]] bool was_restarted();

}  // namespace lab
