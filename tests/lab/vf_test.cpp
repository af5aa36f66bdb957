// What a PF sets for a VF while the VF is in a pod: all of it as asked and verified, and all of it back.
#include <chrono>
#include <thread>

#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Function;
using lab::OwnMac;
using lab::Pod;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;
using support::sh;

const auto kFunction = lab::vf(1, 0);
const auto kOther = lab::vf(1, 1);
constexpr const char* kMac = "02:00:00:00:be:01";

/// All that the driver can set.
const Json kAll{{"vlan", 100},        {"vlanQoS", 3}, {"vlanProto", "802.1q"}, {"spoofchk", "off"}, {"trust", "on"},
                {"max_tx_rate", 200}, {"mac", kMac}};

Json vlan_of(const Json& settings) {
  return settings["vlan_list"].at(0);
}

void set_on_pf(const Function& function, const std::string& what) {
  sh("ip link set " + lab::pf(function.card).netdev() + " vf " + std::to_string(function.vf.value()) + " " + what);
}

/// What it is by default.
void clear_on_pf(const Function& function) {
  set_on_pf(function, "vlan 0 spoofchk on trust off max_tx_rate 0");
}

/// The requests in the last trace that move a link, and those that set something of a VF.
std::string order_of_changes() {
  std::string order;
  for (const auto& line : support::trace()) {
    order += support::is_move(line) ? "m" : support::sets_attribute(line, "IFLA_VFINFO_LIST") ? "v" : "";
  }
  return order;
}

/// Which of the answers in the last trace are lists of VFs (those to the requests with RTEXT_FILTER_VF), behind the first line that has the
/// word.
std::vector<int> vf_lists(const std::string& behind = {}) {
  std::vector<int> lists;
  int answers = 0;
  bool is_behind = behind.empty();
  for (const auto& line : support::trace()) {
    if (is_behind && line.find(R"(\x1d\x00\x09\x00)") != std::string::npos) {
      lists.push_back(answers + 1);
    }
    is_behind = is_behind || line.find(behind) != std::string::npos;
    answers += line.starts_with("recvfrom") ? 1 : 0;
  }
  return lists;
}

/// What strace's inject= takes to lose these two answers as if there were too many VFs for one.
std::string losing(int first, int second) {
  return "recvfrom:error=EMSGSIZE:when=" + std::to_string(first) + ".." + std::to_string(second) + '+' + std::to_string(second - first);
}

}  // namespace

TEST_CASE("all that a PF can set for a VF is set while it is in the pod, and back afterwards") {
  const Scenario scenario{lab::kLayout};
  const bool is_up = GENERATE(true, false);
  CAPTURE(is_up);
  const OwnMac own{kFunction};
  const auto name = kFunction.netdev();
  sh("ip link set " + name + (is_up ? " up" : " down"));
  const Pod pod;
  auto attachment = lab::attachment(kFunction, pod, kAll);
  attachment.network["cniVersion"] = "1.1.0";
  attachment.network["mtu"] = 9000;
  const auto before = lab::pf_text(1);
  const auto link_before = support::snapshot(name);

  const auto result = expect_success(attachment.add());
  CHECK(result["interfaces"][0] ==
        Json{{"name", "net1"}, {"mac", kMac}, {"mtu", 9000}, {"sandbox", pod.path()}, {"pciID", kFunction.address()}});
  const auto settings = lab::vf_settings(kFunction);
  CHECK(vlan_of(settings) == Json{{"vlan", 100}, {"qos", 3}});
  CHECK(settings["address"] == kMac);
  CHECK(settings["spoofchk"] == false);
  CHECK(settings["trust"] == true);
  CHECK(settings["rate"]["max_tx"] == 200);
  CHECK(support::show_link("net1", "pod")["address"] == kMac);
  CHECK(support::show_link("net1", "pod")["mtu"] == 9000);
  expect_success(attachment.check(result));

  expect_success(attachment.del());
  CHECK(lab::pf_text(1) == before);
  CHECK(support::changes(link_before, support::snapshot(name)) == "");
  support::expect_no_traces();
  // What the driver does not tell, and no one can put back: from now on the PF insists on the MAC.
  CHECK(support::run(support::shell("ip link set " + name + " down && ip link set " + name + " address 02:00:00:00:cc:02")).status != 0);
}

TEST_CASE("what a PF had set for a VF comes back, not some default") {
  const Scenario scenario{lab::kLayout};
  set_on_pf(kFunction, "vlan 7 qos 2 spoofchk off trust on max_tx_rate 50");
  const OwnMac own{kFunction};
  const auto before = lab::pf_text(1);
  const Pod pod;
  const Json other{{"vlan", 100}, {"spoofchk", "on"}, {"trust", "off"}, {"max_tx_rate", 200}, {"mac", kMac}};
  for (const auto& keys : {other, Json{{"vlan", 0}, {"vlanQoS", 0}, {"vlanProto", "802.1Q"}}, Json{{"max_tx_rate", 0}}}) {
    CAPTURE(keys.dump());
    const auto attachment = lab::attachment(kFunction, pod, keys);
    expect_success(attachment.add());
    CHECK(lab::pf_text(1) != before);
    expect_success(attachment.del());
    CHECK(lab::pf_text(1) == before);
  }
  clear_on_pf(kFunction);
}

TEST_CASE("what the driver refuses names PF, VF, setting and errno, and what was set before it is back") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const Pod pod;
  const auto before = lab::pf_text(1);
  const auto expect_refusal = [&](const Json& keys, const std::string& key, const std::string& value, const std::string& error_number) {
    CAPTURE(keys.dump());
    auto attachment = lab::attachment(kFunction, pod, keys);
    attachment.network.merge_patch(lab::full_size_with_address());
    expect_error(attachment.add(), 101, {"'eth0'", "'igb'", "VF 0", kFunction.address(), key, value, "errno " + error_number});
    CHECK(lab::pf_text(1) == before);
    CHECK(support::show_link(kFunction.netdev())["address"] == own.mac());
    CHECK(lab::reserved_addresses().empty());
    support::expect_no_traces();
  };
  expect_refusal({{"vlan", 100}, {"mac", kMac}, {"trust", "on"}, {"link_state", "enable"}}, "link_state", "enable", "95");
  expect_refusal({{"vlan", 100}, {"vlanProto", "802.1ad"}}, "vlan", "802.1ad", "93");
  expect_refusal({{"vlan", 100}, {"min_tx_rate", 10}, {"max_tx_rate", 100}}, "min_tx_rate", "10", "22");
  expect_refusal({{"vlan", 100}, {"max_tx_rate", 100000}}, "max_tx_rate", "100000", "22");
}

TEST_CASE("what nobody configured, and what is so already, is not sent to the PF") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const auto count = [&](const Json& keys) {
    const auto attachment = lab::attachment(kFunction, pod, keys);
    expect_success(attachment.under(support::strace({"-e", "trace=sendto"})).add());
    const auto out = order_of_changes();
    expect_success(attachment.under(support::strace({"-e", "trace=sendto"})).del());
    return out + ' ' + order_of_changes();
  };
  CHECK(count({{"mtu", 9000}}) == "m m");
  CHECK(count({{"vlan", 0},
               {"vlanQoS", 0},
               {"vlanProto", "802.1q"},
               {"spoofchk", "on"},
               {"trust", "off"},
               {"link_state", "auto"},
               {"max_tx_rate", 0},
               {"min_tx_rate", 0}}) == "m m");
  // The PF first on the way out, the netdev first on the way home.
  CHECK(count({{"vlan", 100}, {"trust", "on"}}) == "vvm mvv");
}

TEST_CASE("a VF that is busy at any of the requests is asked again, and ends as asked and as it was") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, kAll);
  const auto before = lab::pf_text(1);
  const auto numbers_of_changes = [] {
    std::vector<int> numbers;
    const auto lines = support::trace();
    for (std::size_t at = 0; at < lines.size(); ++at) {
      if (support::is_move(lines[at]) || support::sets_attribute(lines[at], "IFLA_VFINFO_LIST")) {
        numbers.push_back(static_cast<int>(at) + 1);
      }
    }
    return numbers;
  };
  const auto traced = support::strace({"-e", "trace=sendto"});
  expect_success(attachment.under(traced).add());
  const auto on_add = numbers_of_changes();
  expect_success(attachment.under(traced).del());
  const auto on_del = numbers_of_changes();
  REQUIRE(on_add.size() == 6);
  REQUIRE(on_del.size() == 6);
  for (std::size_t at = 0; at < on_add.size(); ++at) {
    CAPTURE(at);
    const std::string busy = at % 2 == 0 ? "error=EBUSY" : "error=EAGAIN";
    CHECK(expect_success(attachment.under(support::inject("sendto", busy, on_add[at])).add())["interfaces"][0]["mac"] == kMac);
    CHECK(support::was_injected());
    const auto settings = lab::vf_settings(kFunction);
    CHECK(vlan_of(settings) == Json{{"vlan", 100}, {"qos", 3}});
    CHECK(settings["address"] == kMac);
    CHECK(settings["trust"] == true);
    expect_success(attachment.under(support::inject("sendto", busy, on_del[at])).del());
    CHECK(support::was_injected());
    CHECK(lab::pf_text(1) == before);
    CHECK(support::show_link(kFunction.netdev())["address"] == own.mac());
    support::expect_no_traces();
  }
}

TEST_CASE("a PF that says nothing of a VF which it is resetting is waited for: the VF does not go without its VLAN") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, {{"vlan", 100}});
  const auto before = lab::pf_text(1);
  const auto busy = [&](const std::vector<std::string>& more) {
    std::vector<std::string> options{"-e", "trace=sendto,recvfrom"};
    options.insert(options.end(), more.begin(), more.end());
    expect_success(attachment.under(support::strace(options)).add());
    CHECK(vlan_of(lab::vf_settings(kFunction)) == Json{{"vlan", 100}});
    expect_success(attachment.del());
    CHECK(lab::pf_text(1) == before);
    return support::trace("(INJECTED)").size();
  };
  REQUIRE(busy({}) == 0);
  int set_vf = 0;
  for (const auto& line : support::trace("sendto")) {
    ++set_vf;
    if (support::sets_attribute(line, "IFLA_VFINFO_LIST")) {
      break;
    }
  }
  // The PF is busy, and then says nothing when it is asked how the VF is, once and a second time.
  const auto is_busy = "inject=sendto:error=EBUSY:when=" + std::to_string(set_vf);
  REQUIRE(busy({"-e", is_busy}) == 1);
  const auto first = vf_lists("(INJECTED)").at(0);
  REQUIRE(busy({"-e", is_busy, "-e", "inject=recvfrom:error=EMSGSIZE:when=" + std::to_string(first)}) == 2);
  const auto second = vf_lists("(INJECTED)").at(1);
  REQUIRE(busy({"-e", is_busy, "-e", "inject=" + losing(first, second)}) == 3);
}

TEST_CASE("a VF gets the MAC that was asked for, whatever its PF insisted on before") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const Pod pod;
  const std::string pinned = "02:00:00:00:cc:01";
  set_on_pf(kFunction, "mac " + pinned);
  const auto before = lab::pf_text(1);

  const auto with_mac = lab::attachment(kFunction, pod, {{"mac", kMac}});
  CHECK(expect_success(with_mac.add())["interfaces"][0]["mac"] == kMac);
  CHECK(support::show_link("net1", "pod")["address"] == kMac);
  expect_success(with_mac.del());
  CHECK(lab::pf_text(1) == before);

  // Without one it is the PF's, which the VF would take with its next reset at any rate.
  const auto without = lab::attachment(kFunction, pod);
  CHECK(expect_success(without.add())["interfaces"][0]["mac"] == pinned);
  CHECK(support::show_link("net1", "pod")["address"] == pinned);
  expect_success(without.del());
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("a MAC of zeros comes back as such") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const bool is_up = GENERATE(true, false);
  CAPTURE(is_up);
  const auto name = kFunction.netdev();
  sh("ip link set " + name + (is_up ? " up" : " down"));
  set_on_pf(kFunction, "mac 00:00:00:00:00:00");
  const auto before = lab::pf_text(1);
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, {{"mac", kMac}});
  expect_success(attachment.add());
  CHECK(lab::vf_settings(kFunction)["address"] == kMac);
  expect_success(attachment.del());
  CHECK(lab::pf_text(1) == before);
  CHECK(support::show_link(name)["address"] == own.mac());
  // The PF is bound to none.
  sh("ip link set " + name + " down && ip link set " + name + " address 02:00:00:00:cc:02");
}

TEST_CASE("whatever a pod did to its VF is undone") {
  const Scenario scenario{lab::kLayout};
  const lab::Configured nic{kFunction};
  const auto before = lab::pf_text(1);
  Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, {{"trust", "on"}, {"vlan", 100}});
  expect_success(attachment.add());
  sh("ip -n pod link set net1 down && ip -n pod link set net1 address 02:00:00:00:dd:01 mtu 1280 txqueuelen 77 alias tenant promisc off "
     "allmulticast off && ip -n pod link set net1 name tenant0 up");
  if (GENERATE(false, true)) {
    pod.destroy();
  }
  expect_success(attachment.del());
  nic.expect_home();
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("a PF with too many VFs for an answer: a VF is attached as it is, and nothing is set for it") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const auto before = lab::pf_text(1);
  const auto plain = lab::attachment(kFunction, pod);
  const auto asking = lab::attachment(kFunction, pod, {{"vlan", 100}, {"wait", {{"device", "0s"}}}});
  expect_success(asking.under(support::strace({"-e", "trace=sendto,recvfrom"})).add());
  expect_success(asking.del());
  const auto lists = vf_lists();
  REQUIRE(lists.size() > 3);
  expect_success(plain.under(support::inject("recvfrom", "error=EMSGSIZE", lists[0])).add());
  CHECK(support::was_injected());
  CHECK(support::show_link("net1", "pod")["parentdev"] == kFunction.address());
  expect_success(plain.del());
  // The two that look whether the PF says anything by now.
  const auto too_many = support::strace({"-e", "trace=recvfrom", "-e", "inject=" + losing(lists[1], lists[2])});
  expect_error(asking.under(too_many).add(), 101, {"'eth0'", "lacks VF 0", kFunction.address(), "too many VFs"});
  CHECK(support::trace("(INJECTED)").size() == 2);
  CHECK(lab::pf_text(1) == before);
  support::expect_no_traces();
}

TEST_CASE("a MAC that a pod gave its VF goes home with nobody, and the VF may choose its MAC as before") {
  const Scenario scenario{lab::kLayout};
  const bool is_trusted = GENERATE(false, true);
  CAPTURE(is_trusted);
  const OwnMac own{kFunction};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, {{"trust", is_trusted ? "on" : "off"}});
  const auto before = lab::pf_text(1);
  expect_success(attachment.add());
  sh("ip -n pod link set net1 down && ip -n pod link set net1 address 02:00:00:00:dd:01 && ip -n pod link set net1 up");
  CHECK(lab::vf_settings(kFunction)["address"] == "02:00:00:00:dd:01");
  expect_success(attachment.del());
  CHECK(lab::pf_text(1) == before);
  CHECK(support::show_link(kFunction.netdev())["address"] == own.mac());
  sh("ip link set " + kFunction.netdev() + " address 02:00:00:00:dd:02");
}

TEST_CASE("a MAC that another function of the PF has is refused, and its holder named") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const Pod other{"other"};
  const auto before = lab::pf_text(1);
  const auto pf_mac = support::show_link(lab::pf(1).netdev())["address"].get<std::string>();
  const auto vf_mac = support::show_link(kOther.netdev())["address"].get<std::string>();
  expect_error(lab::attachment(kFunction, pod, {{"mac", pf_mac}}).add(), 100, {pf_mac, "PF 'eth0' itself"});
  expect_error(lab::attachment(kFunction, pod, {{"mac", vf_mac}}).add(), 100, {vf_mac, "VF 1", kOther.address()});

  const OwnMac own{kOther};
  auto holder = lab::attachment(kOther, other, {{"mac", kMac}});
  holder.container = "c2";
  holder.args = "K8S_POD_NAMESPACE=jobs;K8S_POD_NAME=worker-7";
  expect_success(holder.add());
  const Json at_once{{"owner", "0s"}};
  expect_error(lab::attachment(kFunction, pod, {{"mac", kMac}, {"wait", at_once}}).add(), 100,
               {kMac, "VF 1", kOther.address(), "jobs/worker-7", "'c2'"});
  expect_success(holder.del());
  CHECK(lab::pf_text(1) == before);
  support::expect_no_traces();
}

TEST_CASE("a MAC that another pod is giving back is waited for") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const OwnMac own_too{kOther};
  const auto before = lab::pf_text(1);
  const Pod pod;
  const Pod other{"other"};
  auto holder = lab::attachment(kOther, other, {{"mac", kMac}});
  holder.container = "c2";
  expect_success(holder.add());
  const auto next = lab::attachment(kFunction, pod, {{"mac", kMac}, {"wait", {{"owner", "50s"}}}});
  support::Process process{support::program(next.to_call("ADD"))};
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  expect_success(holder.del());
  expect_success(support::answer(process.wait()));
  CHECK(lab::vf_settings(kFunction)["address"] == kMac);
  expect_success(next.del());
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("a MAC that a VF has from a pod which died without a DEL is free for the next") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const OwnMac own_too{kOther};
  const auto before = lab::pf_text(1);
  const Pod pod;
  Pod dead{"dead"};
  auto first = lab::attachment(kOther, dead, {{"mac", kMac}, {"vlan", 7}});
  first.container = "c2";
  expect_success(first.add());
  dead.destroy();
  lab::wait_for_netdev(kOther);

  const auto next = lab::attachment(kFunction, pod, {{"mac", kMac}});
  expect_success(next.add());
  CHECK(lab::vf_settings(kFunction)["address"] == kMac);
  CHECK(lab::vf_settings(kOther)["address"] == own_too.mac());
  CHECK(vlan_of(lab::vf_settings(kOther)) == Json::object());
  expect_success(first.del());
  CHECK(lab::vf_settings(kFunction)["address"] == kMac);
  expect_success(next.del());
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("an MTU above the PF's is refused with both numbers, whether it was asked for or is the VF's own") {
  const Scenario scenario{{.cards = {{{.vfs = 4, .mtu = 1500}, {.vfs = 0, .mtu = 9000}}}, .hcas = {}}};
  const Pod pod;
  const auto name = kFunction.netdev();
  const auto before = lab::pf_text(1);
  expect_error(lab::attachment(kFunction, pod, {{"mtu", 9000}}).add(), 102, {"9000", "1500", "'eth0'", "ip link set eth0 mtu 9000"});
  sh("ip link set " + name + " mtu 4000");
  expect_error(lab::attachment(kFunction, pod).add(), 102, {"4000", "1500", "'eth0'"});
  const auto fitting = lab::attachment(kFunction, pod, {{"mtu", 1500}});
  expect_success(fitting.add());
  CHECK(support::show_link("net1", "pod")["mtu"] == 1500);
  expect_success(fitting.del());
  CHECK(support::show_link(name)["mtu"] == 4000);
  CHECK(lab::pf_text(1) == before);
  support::expect_no_traces();
  sh("ip link set " + name + " mtu 1500");
}

TEST_CASE("settings of a VF are refused for a whole NIC") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  expect_error(lab::attachment(lab::pf(2), pod, {{"vlan", 100}, {"trust", "on"}}).add(), 100, {"'vlan', 'trust'", "no VF"});
  support::expect_no_traces();
}

TEST_CASE("CHECK names the first setting of a VF that is not as asked") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, kAll);
  const auto result = expect_success(attachment.add());
  expect_success(attachment.check(result));
  set_on_pf(kFunction, "max_tx_rate 100");
  set_on_pf(kFunction, "trust off");
  expect_error(attachment.check(result), 102, {"VF 0", "'eth0'", "max_tx_rate", "100", "200"});
  // What is there and not as it was is no answer to a repeated ADD either, nor is what is there to one that asks for something else.
  expect_error(attachment.add(), 4, {"max_tx_rate"});
  set_on_pf(kFunction, "max_tx_rate 200");
  expect_error(attachment.check(result), 102, {"'trust' is off and shall be on"});
  set_on_pf(kFunction, "trust on vlan 8");
  expect_error(attachment.check(result), 102, {"'vlan' is 8", "100 (qos 3, 802.1q)"});
  set_on_pf(kFunction, "vlan 100 qos 3");
  expect_success(attachment.check(result));
  auto other = attachment;
  other.network["vlan"] = 200;
  expect_error(other.add(), 4, {"'vlan'"});
  expect_success(attachment.del());
}

TEST_CASE("a PF that is a port of a bond administers its VFs all the same") {
  const Scenario scenario{lab::kLayout};
  sh("modprobe bonding max_bonds=0 && ip link add bond0 type bond mode active-backup && ip link set eth0 down && ip link set eth0 master "
     "bond0 && ip link set eth0 up && ip link set bond0 up");
  lab::wait_for_carrier("eth0");
  {
    const OwnMac own{kFunction};
    const Pod pod;
    const auto before = lab::vf_settings(kFunction);
    const auto attachment = lab::attachment(kFunction, pod, kAll);
    expect_success(attachment.add());
    CHECK(vlan_of(lab::vf_settings(kFunction)) == Json{{"vlan", 100}, {"qos", 3}});
    expect_success(attachment.del());
    CHECK(lab::vf_settings(kFunction) == before);
  }
  sh("ip link del bond0 && ip link set eth0 up");
  lab::wait_for_carrier("eth0");
}

TEST_CASE("a PF in another namespace is said to be there, and who holds it") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const Pod other{"other"};
  sh("ip link set eth0 netns other");
  expect_error(lab::attachment(kFunction, pod).add(), 100,
               {"'eth2' is VF 0 of PF 0000:01:00.0", "another network namespace", "/run/netns/other"});
  expect_error(lab::attachment(kFunction, pod, {{"vlan", 100}}).add(), 100, {"another network namespace"});
  sh("ip netns exec other ip link set eth0 netns 1 && ip link set eth0 up");
  lab::wait_for_carrier("eth0");
  support::expect_no_traces();
}

TEST_CASE("what the operator of SR-IOV networks renders for sriov-cni works with another type") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const auto before = lab::pf_text(1);
  auto attachment = lab::attachment(kFunction, pod);
  attachment.network = Json::parse(R"({"cniVersion": "1.0.0", "name": "sriov-network", "type": "fabric-nic", "vlan": 0, "vlanQoS": 0,
      "vlanProto": "802.1q", "spoofchk": "off", "trust": "on", "min_tx_rate": 0, "max_tx_rate": 100, "link_state": "auto",
      "logLevel": "info", "logFile": "", "capabilities": {"mac": true, "ips": true}, "ipam": {"type": "static", "addresses":
      [{"address": "10.7.0.5/24"}]}, "runtimeConfig": {"mac": "02:00:00:00:be:01"}})");
  // As Multus adds them.
  attachment.network["deviceID"] = kFunction.address();
  attachment.network["pciBusID"] = kFunction.address();
  const OwnMac own{kFunction};
  const auto result = expect_success(attachment.add());
  CHECK(result["interfaces"][0]["mac"] == kMac);
  CHECK(result["ips"][0]["address"] == "10.7.0.5/24");
  const auto settings = lab::vf_settings(kFunction);
  CHECK(settings["trust"] == true);
  CHECK(settings["spoofchk"] == false);
  CHECK(settings["rate"]["max_tx"] == 100);
  CHECK(settings["address"] == kMac);
  expect_success(attachment.del());
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("a VF in a VLAN reaches those in the same VLAN alone") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const Pod same{"same"};
  const Pod none{"none"};
  const auto attach = [](const Function& function, const Pod& where, const std::string& container, const std::string& address, int vlan) {
    auto attachment = lab::attachment(
        function, where,
        {{"vlan", vlan}, {"mtu", 9000}, {"ipam", {{"type", "static"}, {"addresses", Json::array({{{"address", address}}})}}}});
    attachment.container = container;
    expect_success(attachment.add());
    lab::wait_for_carrier("net1", where.name());
    return attachment;
  };
  const auto one = attach(kFunction, pod, "c1", "10.7.0.1/24", 100);
  const auto two = attach(kOther, same, "c2", "10.7.0.2/24", 100);
  const auto three = attach(lab::vf(1, 2), none, "c3", "10.7.0.3/24", 0);
  const auto reaches = [](const std::string& from, const std::string& address) {
    return support::run(support::shell("ip netns exec " + from + " ping -c 1 -W 2 -M do -s 8972 " + address)).status == 0;
  };
  CHECK(reaches("pod", "10.7.0.2"));
  CHECK_FALSE(reaches("pod", "10.7.0.3"));
  CHECK_FALSE(reaches("none", "10.7.0.1"));
  for (const auto& attachment : {one, two, three}) {
    expect_success(attachment.del());
  }
}
