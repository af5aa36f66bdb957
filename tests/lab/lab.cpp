#include "lab.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "netlink/files.hpp"

namespace lab {

namespace {

using netlink::directory_entries;
using support::sh;
using support::wait_until;

constexpr const char* kHcaParameters = "/sys/module/lab_hca/parameters/";
constexpr const char* kIpamFolder = "/var/lib/cni/addresses";

// Of what a machine has, by key.
const std::string kLink = "link ";
const std::string kVfs = "VFs of ";
const std::string kRdmaDevice = "RDMA device ";

std::string only_entry(const std::string& folder) {
  const auto names = directory_entries(folder);
  return names.empty() ? "" : names.front();
}

/// A link as `ip -d` shows it, without what comes and goes without anybody's doing, or is the kernel's own affair.
Json lasting(Json link) {
  for (const char* name : {"ifindex", "operstate", "qdisc", "link_index", "num_tx_queues", "num_rx_queues"}) {
    link.erase(name);
  }
  Json flags = Json::array();
  for (const auto& flag : link["flags"]) {
    if (flag != "LOWER_UP" && flag != "NO-CARRIER" && flag != "RUNNING") {
      flags.push_back(flag);
    }
  }
  link["flags"] = flags;
  if (link.contains("altnames")) {
    std::sort(link["altnames"].begin(), link["altnames"].end());
  }
  return link;
}

void add_links(std::map<std::string, std::string>& machine) {
  for (auto link : support::ip_json("-d link show")) {
    const auto name = link["ifname"].get<std::string>();
    if (link.contains("vfinfo_list")) {
      machine[kVfs + link["parentdev"].get<std::string>()] = link["vfinfo_list"].dump();
      link.erase("vfinfo_list");
    }
    machine[kLink + name] = lasting(link).dump();
  }
  for (const auto& entry : support::ip_json("addr show")) {
    for (const auto& address : entry["addr_info"]) {
      if (address["scope"] != "link") {
        machine["address " + address["local"].get<std::string>()] = entry["ifname"];
      }
    }
  }
}

/// What the machine has of a card's virtual functions, whose addresses all begin alike.
void forget_vfs(std::map<std::string, std::string>& machine, int card) {
  const auto beginning = "0000:0" + std::to_string(card) + ":1";
  std::erase_if(machine, [&](const auto& entry) {
    const auto& [key, value] = entry;
    return key == kVfs + pf(card).address() ||
           (key.starts_with(kLink) && value.find("\"parentdev\":\"" + beginning) != std::string::npos) ||
           (key.starts_with(kRdmaDevice) && value.starts_with(beginning));
  });
}

void set_number_of_vfs(int card, int number) {
  std::ofstream(pf(card).sysfs() + "/sriov_numvfs") << number << std::flush;
  REQUIRE(netlink::read_line(pf(card).sysfs() + "/sriov_numvfs") == std::to_string(number));
}

void make_vfs(int card, int number) {
  set_number_of_vfs(card, 0);
  if (number == 0) {
    return;
  }
  set_number_of_vfs(card, number);
  for (int each = 0; each < number; ++each) {
    wait_for_netdev(vf(card, each));
    // The PF learns its MAC when it comes up for the first time, and says it from then on. udev may rename it meanwhile, and on a slow
    // machine the two do not hear each other at once.
    wait_until("the VF to tell its PF its MAC", [&] {
      const auto name = vf(card, each).netdev();
      const auto up_and_down = support::run(support::shell("ip link set " + name + " up && ip link set " + name + " down"));
      return up_and_down.status == 0 && vf_settings(vf(card, each))["address"] == support::show_link(vf(card, each).netdev())["address"];
    });
  }
}

int number_of_vfs(int card) {
  return std::stoi(netlink::read_line(pf(card).sysfs() + "/sriov_numvfs").value());
}

void set_card(int card, const Card& wanted) {
  const auto name = pf(card).netdev();
  sh("ip link set " + name + " mtu " + std::to_string(wanted.mtu) + " up");
  wait_for_carrier(name);
  // With their PF up they get carrier; more of them take none in between.
  if (number_of_vfs(card) != wanted.vfs) {
    make_vfs(card, wanted.vfs);
    wait_for_carrier(name);
  }
}

void write_parameter(const std::string& parameter, const std::string& value) {
  std::ofstream file(kHcaParameters + parameter);
  file << value << std::flush;
  INFO(parameter << ' ' << value);
  REQUIRE(file.good());
}

Json rdma_json(const std::string& object, const std::string& net_ns) {
  const auto text = sh((net_ns.empty() ? "" : "ip netns exec " + net_ns + " ") + "rdma -j " + object);
  return text.empty() ? Json::array() : Json::parse(text);
}

std::set<std::string> hca_functions() {
  std::set<std::string> functions;
  for (const auto& name : directory_entries("/sys/class/infiniband")) {
    if (!name.starts_with("rxe")) {
      functions.insert(std::filesystem::canonical("/sys/class/infiniband/" + name + "/device").filename());
    }
  }
  return functions;
}

std::string rxe_name(const Function& function) {
  return "rxe_" + std::to_string(function.card) + (function.vf ? "_" + std::to_string(*function.vf) : "");
}

/// All anew, so that each has the name that its place in the list gives it.
void set_rdma_devices(const Layout& layout) {
  for (const auto& name : directory_entries("/sys/class/infiniband")) {
    if (name.starts_with("rxe")) {
      sh("rdma link delete " + name);
    }
  }
  for (const auto& address : hca_functions()) {
    write_parameter("destroy", address);
  }
  // Refused while a namespace is there, also one that has no name any more and is on its way.
  const std::string mode = layout.mode == RdmaMode::shared ? "shared" : "exclusive";
  wait_until("the RDMA mode", [&] { return support::run(support::shell("rdma system set netns " + mode)).status == 0; });
  for (const auto& hca : layout.hcas) {
    create_hca(hca);
  }
  for (const auto& function : layout.rxes) {
    sh("rdma link add " + rxe_name(function) + " type rxe netdev " + function.netdev());
  }
}

const std::string kAltnames = " altname left-rail altname enp1s16f9000np0s0v0";
const std::map<std::string, std::string> kSysctls{{"ipv4/conf/IFNAME/arp_ignore", "1"},
                                                  {"ipv4/conf/IFNAME/rp_filter", "2"},
                                                  {"ipv6/conf/IFNAME/accept_ra", "0"},
                                                  {"ipv4/neigh/IFNAME/gc_stale_time", "77"}};

std::string sysctl_path(std::string path) {
  return "net/" + path.replace(path.find("IFNAME"), 6, Configured::kName);
}

void write_sysctl(const std::string& path, const std::string& value) {
  std::ofstream("/proc/sys/" + sysctl_path(path)) << value << std::flush;
}

}  // namespace

std::string Function::address() const {
  if (!vf) {
    return "0000:0" + std::to_string(card) + ":00.0";
  }
  return std::filesystem::read_symlink(pf(card).sysfs() + "/virtfn" + std::to_string(*vf)).filename();
}

std::string Function::netdev() const {
  return only_entry(sysfs() + "/net");
}

std::string Function::rdma_device() const {
  return only_entry(sysfs() + "/infiniband");
}

std::vector<std::string> Function::rdma_devices() const {
  auto names = directory_entries(sysfs() + "/infiniband");
  std::ranges::sort(names);
  return names;
}

std::map<std::string, std::string> Function::char_devices() const {
  std::map<std::string, std::string> numbers;
  for (const auto& name : directory_entries(sysfs() + "/infiniband_verbs")) {
    const auto folder = sysfs() + "/infiniband_verbs/" + name;
    numbers[netlink::read_line(folder + "/ibdev").value()] = netlink::read_line(folder + "/dev").value();
  }
  return numbers;
}

const Layout kLayout{.cards = {{{.vfs = 4, .mtu = 9000}, {.vfs = 0, .mtu = 9000}}}, .hcas = {vf(1, 0), vf(1, 1)}};
const Layout kExclusive{.cards = kLayout.cards, .mode = RdmaMode::exclusive, .hcas = {vf(1, 0), vf(1, 1), pf(2)}};

std::map<std::string, std::string> look_at_machine() {
  std::map<std::string, std::string> machine;
  add_links(machine);
  machine["namespaces"] = sh("ip netns list");
  machine["RDMA mode"] = sh("rdma system");
  for (const auto& name : directory_entries("/sys/class/infiniband")) {
    machine[kRdmaDevice + name] = std::filesystem::weakly_canonical("/sys/class/infiniband/" + name + "/device").filename().string();
  }
  machine["records"] = sh("find /var/lib/cni/fabric-nic -name '*.json*' 2>/dev/null || true");
  machine["addresses given"] = Json(reserved_addresses()).dump();
  machine["locks held"] = sh("grep -c FLOCK /proc/locks || true");
  return machine;
}

void expect_as(std::map<std::string, std::string> before, std::source_location where) {
  INFO("called at " << where.file_name() << ":" << where.line());
  auto now = look_at_machine();
  now.erase("namespaces");
  before.erase("namespaces");
  CHECK(support::changes(before, now) == "");
  support::expect_no_traces(where);
}

Scenario::Scenario(const Layout& layout) : layout_(layout) {
  sh("modprobe -a igb igbvf ib_uverbs lab_hca rdma_rxe && modprobe dummy numdummies=0");
  for (int card = 1; card <= 2; ++card) {
    wait_for_netdev(pf(card));
    set_card(card, layout_.cards.at(static_cast<std::size_t>(card - 1)));
  }
  set_rdma_devices(layout_);
  before_ = look_at_machine();
  if (was_restarted()) {
    before_["records"] = "";
    before_["addresses given"] = "[]";
  }
}

Scenario::~Scenario() {
  if (ends_with_restart_) {
    return;
  }
  try {
    for (int card = 1; card <= 2; ++card) {
      if (are_vfs_made_anew_.at(static_cast<std::size_t>(card - 1))) {
        set_number_of_vfs(card, 0);
      }
    }
    auto after = look_at_machine();
    for (int card = 1; card <= 2; ++card) {
      if (are_vfs_made_anew_.at(static_cast<std::size_t>(card - 1))) {
        forget_vfs(before_, card);
        forget_vfs(after, card);
      }
    }
    CHECK(support::changes(before_, after) == "");
  } catch (...) {
    FAIL_CHECK("the machine could not be looked at");
  }
}

void Scenario::remove_vfs(int card) {
  are_vfs_made_anew_.at(static_cast<std::size_t>(card - 1)) = true;
  set_number_of_vfs(card, 0);
}

void Scenario::make_vfs_anew(int card) {
  are_vfs_made_anew_.at(static_cast<std::size_t>(card - 1)) = true;
  make_vfs(card, layout_.cards.at(static_cast<std::size_t>(card - 1)).vfs);
  for (const auto& hca : layout_.hcas) {
    if (hca.function.card == card && hca.function.vf) {
      create_hca(hca);
    }
  }
}

void Scenario::restart() {
  ends_with_restart_ = true;
  std::filesystem::copy("/var/lib/cni", "/lab/restart", std::filesystem::copy_options::recursive);
}

void Scenario::unbind(const Function& function) {
  are_vfs_made_anew_.at(static_cast<std::size_t>(function.card - 1)) = true;
  std::ofstream(function.sysfs() + "/driver/unbind") << function.address() << std::flush;
  REQUIRE_FALSE(std::filesystem::exists(function.sysfs() + "/driver"));
}

void Scenario::bind(const Function& function, const std::string& driver) {
  sh("modprobe " + driver);
  std::ofstream(function.sysfs() + "/driver_override") << driver << std::flush;
  std::ofstream("/sys/bus/pci/drivers_probe") << function.address() << std::flush;
  std::ofstream(function.sysfs() + "/driver_override") << '\n' << std::flush;
  REQUIRE(std::filesystem::read_symlink(function.sysfs() + "/driver").filename() == driver);
}

Pod::Pod(std::string name) : name_(std::move(name)) {
  sh("ip netns add " + name_);
}

void Pod::destroy() {
  if (std::filesystem::exists(path())) {
    (void)support::run(support::shell("ip netns del " + name_));
  }
}

Configured::Configured(const Function& function) : function_(function), first_name_(function.netdev()) {
  const auto link = support::show_link(first_name_);
  first_mac_ = link["address"];
  first_mtu_ = link["mtu"].dump();
  const std::string rail = kName;
  sh("ip link set " + first_name_ + " down && ip link set " + first_name_ + " name " + rail);
  sh("ip link property add dev " + rail + kAltnames);
  sh("ip link set " + rail + " alias 'rail of rack 7' mtu 1400 address 02:00:00:00:ab:01 txqueuelen 500");
  sh("ip link set " + rail + " promisc on allmulticast on up");
  wait_for_carrier(rail);
  for (const auto& [path, value] : kSysctls) {
    first_sysctls_[path] = support::sysctl(sysctl_path(path));
    write_sysctl(path, value);
  }
  snapshot_ = support::snapshot(rail);
  link_ = lasting(support::show_link(rail));
}

Configured::~Configured() {
  if (is_forgotten_) {
    return;
  }
  const std::string rail = kName;
  for (const auto& [path, value] : first_sysctls_) {
    write_sysctl(path, value);
  }
  const auto ending = support::run(
      support::shell("ip link set " + rail + " down promisc off allmulticast off && ip link set " + rail + " alias '' mtu " + first_mtu_ +
                     " address " + first_mac_ + " txqueuelen 1000 && ip link property del dev " + rail + kAltnames + " && ip link set " +
                     rail + " name " + first_name_ + (function_.vf ? "" : " && ip link set " + first_name_ + " up")));
  if (ending.status != 0) {
    FAIL_CHECK("the NIC could not be cleared: " << ending.err);
  }
}

void Configured::expect_home(std::source_location where) const {
  INFO("called at " << where.file_name() << ":" << where.line());
  REQUIRE(function_.netdev() == kName);
  CHECK(support::changes(snapshot_, support::snapshot(kName)) == "");
  CHECK(link_ == lasting(support::show_link(kName)));
  support::expect_no_traces();
}

Json vf_settings(const Function& function) {
  return support::show_link(pf(function.card).netdev())["vfinfo_list"].at(static_cast<std::size_t>(function.vf.value()));
}

std::string pf_text(int card) {
  return sh("ip -j -d link show " + pf(card).netdev());
}

OwnMac::OwnMac(const Function& function) : function_(function), mac_(support::show_link(function.netdev())["address"]) {}

OwnMac::~OwnMac() {
  const auto name = function_.netdev();
  // The driver is not told a MAC that the netdev has already, and takes what it is told for the permanent one with the next reset.
  const auto set = "ip link set " + pf(function_.card).netdev() + " vf " + std::to_string(function_.vf.value()) +
                   " mac 00:00:00:00:00:00 && ip link set " + name + " address 02:00:00:00:ff:ff && ip link set " + name + " address " +
                   mac_ + " && ip link set " + name + " up && ip link set " + name + " down";
  if (const auto ending = support::run(support::shell(set)); ending.status != 0) {
    FAIL_CHECK("the VF could not be given its own MAC back: " << ending.err);
  }
}

void create_hca(const Hca& hca) {
  write_parameter("create", hca.function.address() + " " + hca.name + " " + hca.options);
}

void destroy_hca(const Function& function, const std::string& name) {
  write_parameter("destroy", function.address() + " " + name);
}

void set_hca(const Function& function, const std::string& options, const std::string& name) {
  write_parameter("set", function.address() + " " + name + " " + options);
}

void AddedHca::leave() {
  if (std::exchange(is_there_, false)) {
    std::ofstream(std::string{kHcaParameters} + "destroy") << hca_.function.address() << ' ' << hca_.name << std::flush;
  }
}

bool is_linux_6() {
  return sh("uname -r").starts_with("6.");
}

std::vector<std::string> rdma_devices(const std::string& net_ns) {
  std::vector<std::string> names;
  for (const auto& device : rdma_json("dev", net_ns)) {
    names.push_back(device["ifname"]);
  }
  std::ranges::sort(names);
  return names;
}

Json rdma_port(const std::string& device, const std::string& net_ns) {
  for (const auto& port : rdma_json("link", net_ns)) {
    if (port["ifname"] == device) {
      return port;
    }
  }
  return nullptr;
}

std::string verbs_text(const std::string& device, const std::string& net_ns) {
  return sh("ip netns exec " + net_ns + " ibv_devinfo -v -d " + device);
}

support::Attachment attachment(const Function& function, const Pod& pod, const Json& keys) {
  support::Attachment attachment;
  attachment.network = support::config({{"device", nullptr}, {"deviceID", function.address()}});
  attachment.network.merge_patch(keys);
  attachment.net_ns = pod.path();
  return attachment;
}

Json with_address(const std::string& address) {
  return {{"ipam", {{"type", "static"}, {"addresses", Json::array({{{"address", address}}})}}}};
}

Json full_size_with_address() {
  return {{"mtu", 9000},
          {"ipam",
           {{"type", "host-local"},
            {"dataDir", kIpamFolder},
            {"ranges", Json::array({Json::array({{{"subnet", "10.7.0.0/24"}, {"rangeStart", "10.7.0.10"}}})})}}}};
}

std::vector<std::string> reserved_addresses() {
  auto names = directory_entries(std::string{kIpamFolder} + "/rail");
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("10."); });
  return names;
}

void wait_for_netdev(const Function& function) {
  wait_until("the netdev of " + function.sysfs(), [&] { return !function.netdev().empty(); });
}

void wait_for_carrier(const std::string& interface, const std::string& net_ns) {
  wait_until(
      "the carrier of " + interface, [&] { return support::has_flag(support::show_link(interface, net_ns), "LOWER_UP"); },
      std::chrono::seconds{60});
}

bool was_restarted() {
  return std::getenv("LAB_RESTARTED") != nullptr;
}

}  // namespace lab
