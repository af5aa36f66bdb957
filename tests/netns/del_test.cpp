// DEL succeeds whatever is gone, any number of times, and touches nothing of anyone else.

#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

const Json kHostLocal{{"ipam", {{"type", "host-local"}, {"ranges", {{{{"subnet", "10.7.0.0/24"}}}}}}}};

/// Addresses that host-local has given out and not got back.
std::vector<std::string> reservations() {
  std::vector<std::string> result;
  const std::filesystem::path directory = "/var/lib/cni/networks/rail";
  if (std::filesystem::exists(directory)) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      if (const std::string name = entry.path().filename(); name.starts_with("10.7.")) {
        result.push_back(name);
      }
    }
  }
  return result;
}

void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::trunc) << text;
}

std::string read_file(const std::string& path) {
  return sh("cat '" + path + "'");
}

}  // namespace

TEST_CASE_METHOD(NicAndPod, "DEL succeeds a second time") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kHostLocal)};
  expect_success(attachment.add());
  expect_success(attachment.del());
  expect_home(before);
  Attachment again = attachment;
  again.net_ns = GENERATE(as<std::string>{}, "/run/netns/pod", "", "/run/netns/never-there");
  CAPTURE(again.net_ns);
  expect_success(again.del());
  expect_home(before);
  CHECK(reservations().empty());
}

TEST_CASE_METHOD(NicAndPod, "DEL succeeds for an attachment that never was") {
  const Snapshot before = snapshot("nic0");
  const std::string net_ns = GENERATE(as<std::string>{}, "/run/netns/pod", "", "/run/netns/never-there");
  CAPTURE(net_ns);
  expect_success(Attachment{.network = config(kHostLocal), .net_ns = net_ns}.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "DEL with an empty CNI_NETNS brings the NIC home from the recorded namespace and frees its address") {
  const Snapshot before = snapshot("nic0");
  Attachment attachment{.network = config(kHostLocal)};
  expect_success(attachment.add());
  REQUIRE(reservations().size() == 1);
  const std::string variable = GENERATE(as<std::string>{}, "empty", "unset");
  CAPTURE(variable);
  Call call = attachment.to_call("DEL");
  if (variable == "empty") {
    call.variables["CNI_NETNS"] = "";
  } else {
    call.variables.erase("CNI_NETNS");
  }
  expect_success(support::call(call));
  expect_home(before);
  CHECK(reservations().empty());
}

TEST_CASE_METHOD(NicAndPod, "DEL frees the address and the record when the pod's namespace is gone") {
  Attachment attachment{.network = config(kHostLocal)};
  expect_success(attachment.add());
  REQUIRE(reservations().size() == 1);
  sh("ip netns del pod");  // and with it the veth end, which no hardware would be
  attachment.net_ns = GENERATE(as<std::string>{}, "/run/netns/pod", "");
  CAPTURE(attachment.net_ns);
  expect_success(attachment.del());
  CHECK(reservations().empty());
  expect_no_traces();
  expect_success(attachment.del());
}

TEST_CASE_METHOD(NicAndPod, "DEL succeeds when the namespace path is a plain file") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kHostLocal)};
  expect_success(attachment.add());
  SECTION("and the namespace is gone") {
    sh("umount /run/netns/pod");
    REQUIRE(std::filesystem::is_regular_file("/run/netns/pod"));
    expect_success(attachment.del());
    expect_no_traces();
  }
  SECTION("and the namespace lives on, out of reach of the path") {
    const Holder holder("pod");
    sh("umount /run/netns/pod");
    expect_success(attachment.del());
    if (has_link("nic0")) {
      expect_home(before);
    } else {
      // It is not gone, so the record has to say where it was until somebody can bring it home.
      CHECK(record_files().size() == 1);
    }
  }
  CHECK(reservations().empty());
}

TEST_CASE_METHOD(NicAndPod, "DEL leaves alone what is in another namespace that has got the path") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kHostLocal)};
  expect_success(attachment.add());
  add_pod("other");
  sh("ip -n other link add net1 type bridge && ip -n other link set net1 up mtu 1234");
  const Snapshot other_before = snapshot("net1", "other");
  std::optional<Holder> holder;
  SECTION("while the pod's own namespace is gone") {}
  SECTION("while the pod's own namespace lives on") {
    holder.emplace("pod");
  }
  sh("umount /run/netns/pod && mount --bind /run/netns/other /run/netns/pod");

  expect_success(attachment.del());
  CHECK(changes(other_before, snapshot("net1", "other")) == "");
  CHECK(reservations().empty());
  if (has_link("nic0")) {
    CHECK(changes(before, snapshot("nic0")) == "");
  }
  expect_success(attachment.del());
  CHECK(changes(other_before, snapshot("net1", "other")) == "");
}

TEST_CASE_METHOD(NicAndPod, "DEL succeeds and brings the NIC home when the record cannot be read") {
  sh("ip link property add dev nic0 altname rail0");  // a veth has no address on a bus: only an altname can say which it is
  const Attachment attachment{.network =
                                  config(kHostLocal).patch(Json::parse(R"([{"op": "replace", "path": "/device", "value": "rail0"}])"))};
  expect_success(attachment.add());
  sh("ip -n pod link add link net1 name mv type macvlan mode bridge");  // what a pod has put onto it does not stay connected
  REQUIRE(record_files().size() == 1);
  const std::string path = record_files()[0];
  const std::string record = read_file(path);
  SECTION("it is empty") {
    overwrite(path, "");
  }
  SECTION("it is half a record") {
    overwrite(path, record.substr(0, record.size() / 2));
  }
  SECTION("it is garbage") {
    overwrite(path, std::string("\0\xff{]garbage", 12));
  }
  SECTION("it is JSON of another kind") {
    overwrite(path, "[1, 2, 3]");
  }
  SECTION("its members have other types") {
    overwrite(path, R"({"owner": 7, "device": [], "before": "x"})");
  }
  SECTION("it is gone") {
    std::filesystem::remove(path);
  }
  const Answer deleted = attachment.del();
  expect_success(deleted);
  CHECK(deleted.err != "");
  CHECK(reservations().empty());
  CHECK(link_names("pod") == std::vector<std::string>{});
  CHECK(has_link("rail0"));
  CHECK(record_files().empty());
  expect_success(attachment.del());
}

TEST_CASE_METHOD(NicAndPod, "an unreadable record does not keep its device from the next ADD") {
  const Attachment first;
  expect_success(first.add());
  overwrite(record_files().at(0), "garbage");
  sh("ip -n pod link set net1 down && ip -n pod link set net1 netns 1 name nic0");
  const Attachment second{.container = "c2"};
  const Answer added = second.add();
  expect_success(added);
  expect_success(second.del());
  CHECK(has_link("nic0"));
}

TEST_CASE_METHOD(NicAndPod, "DEL of another owner touches neither the NIC nor its record") {
  const Attachment owner;
  expect_success(owner.add());
  const Snapshot before = snapshot("net1", "pod");
  const std::string record = read_file(record_files().at(0));
  Attachment other;
  SECTION("another container") {
    other.container = "c2";
  }
  SECTION("another interface of the container") {
    other.interface = "net2";
  }
  SECTION("another network") {
    other.network["name"] = "another-rail";
  }
  expect_success(other.del());
  CHECK(changes(before, snapshot("net1", "pod")) == "");
  CHECK(read_file(record_files().at(0)) == record);
}

TEST_CASE_METHOD(NicAndPod, "a late DEL touches nothing of the pod that has the NIC now") {
  add_pod("pod2");
  const Attachment first{.network = config({{"mtu", 1400}})};
  const Attachment second{.network = config({{"mtu", 9000}}), .container = "c2", .net_ns = "/run/netns/pod2"};
  expect_success(first.add());
  expect_success(first.del());
  expect_success(second.add());
  const Snapshot before = snapshot("net1", "pod2");
  expect_success(first.del());
  CHECK(changes(before, snapshot("net1", "pod2")) == "");
  CHECK(record_files().size() == 1);
}

TEST_CASE_METHOD(NicAndPod, "a late DEL leaves the NIC alone that another container has by the same path and name") {
  sh("ip link set nic0 up mtu 3000 && ip link property add dev nic0 altname rail0");
  const Json by_altname = config({{"device", "rail0"}});
  const Attachment first{.network = by_altname};
  const Attachment second{.network = by_altname, .container = "c2"};
  const Snapshot home = snapshot("nic0");
  expect_success(first.add());
  expect_success(first.del());
  expect_success(second.add());
  const Snapshot before = snapshot("net1", "pod");
  SECTION("the former owner") {
    expect_success(first.del());
  }
  SECTION("a container that never had it") {
    expect_success(Attachment{.network = by_altname, .container = "c3"}.del());
  }
  SECTION("another network") {
    Json other = by_altname;
    other["name"] = "other";
    expect_success(Attachment{.network = other, .container = "c2"}.del());
  }
  CHECK(changes(before, snapshot("net1", "pod")) == "");
  CHECK(record_files().size() == 1);
  expect_success(second.del());
  expect_home(home);
}

TEST_CASE_METHOD(NicAndPod, "DEL releases every record of its attachment, also beside one that cannot be restored whole") {
  add_nic("nic1");
  sh("ip link add aux type veth peer name aux-peer && ip addr add 203.0.113.1/32 dev aux && ip link set aux up");
  sh("ip link set nic0 up && ip addr add 192.0.2.1/24 dev nic0 && ip route add 10.3.0.0/16 via 192.0.2.9 dev nic0 src 203.0.113.1");
  const Attachment first{.network = config({{"allowInUse", true}})};
  expect_success(first.add());
  sh("ip addr del 203.0.113.1/32 dev aux");
  expect_success(first.del());
  REQUIRE(record_files().size() == 1);
  const Attachment second{.network = config({{"device", "nic1"}})};
  const Snapshot before = snapshot("nic1");
  expect_success(second.add());
  expect_success(second.del());
  CHECK(changes(before, snapshot("nic1")) == "");
  CHECK(record_files().size() == 1);
  SECTION("and once the reason is gone the next DEL restores the rest") {
    sh("ip addr add 203.0.113.1/32 dev aux");
    expect_success(first.del());
    CHECK(record_files().empty());
    CHECK(sh("ip route show 10.3.0.0/16").find("src 203.0.113.1") != std::string::npos);
  }
  SECTION("and who has its name now can be attached") {
    sh("ip link set nic0 name old && ip link set nic1 name nic0");
    const Attachment third{.container = "c3"};
    const Answer added = third.add();
    expect_success(added);
    CHECK(added.elapsed < std::chrono::milliseconds{20'000});
    CHECK(show_link("net1", "pod")["address"].dump() == before.at("address"));
    expect_success(third.del());
  }
}

TEST_CASE_METHOD(NicAndPod, "DEL leaves an interface of that name alone that it never brought there") {
  sh("ip -n pod link add net1 type bridge && ip -n pod link set net1 up");
  const Snapshot before = snapshot("net1", "pod");
  expect_success(Attachment{}.del());
  CHECK(changes(before, snapshot("net1", "pod")) == "");
}

TEST_CASE_METHOD(NicAndPod, "DEL with the host's own namespace as CNI_NETNS succeeds and takes nothing") {
  sh("touch /run/netns/host && mount --bind /proc/1/ns/net /run/netns/host && ip link set nic0 name net1");
  const Snapshot before = snapshot("net1");
  expect_success(Attachment{.net_ns = "/run/netns/host"}.del());
  CHECK(changes(before, snapshot("net1")) == "");
}

TEST_CASE_METHOD(NicAndPod, "DEL refuses to bring a NIC into another namespace than the one that it was taken from") {
  const Attachment attachment;
  expect_success(attachment.add());
  const Snapshot before = snapshot("net1", "pod");
  expect_error(attachment.under({"ip", "netns", "exec", "fabric"}).del(), 100, {"namespace"});
  CHECK(changes(before, snapshot("net1", "pod")) == "");
  CHECK(record_files().size() == 1);
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin whose DEL fails does not keep the NIC, its error is reported, and the next DEL asks it again") {
  write_plugin("forgetful", R"(
    echo $CNI_COMMAND >> /run/verbs
    case $CNI_COMMAND in
      ADD) echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}';;
      DEL) [ -e /run/works ] || { echo '{"code": 77, "msg": "the pool is locked"}'; exit 1; };;
    esac)");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"ipam", {{"type", "forgetful"}}}})};
  expect_success(attachment.add());
  expect_error(attachment.del(), 77, {"forgetful", "the pool is locked"});
  REQUIRE(has_link("nic0"));
  CHECK(changes(before, snapshot("nic0")) == "");
  CHECK(record_files().empty());

  sh("touch /run/works");
  Attachment again = attachment;
  again.net_ns = GENERATE(as<std::string>{}, "/run/netns/pod", "");
  expect_success(again.del());
  CHECK(read_file("/run/verbs") == "ADD\nDEL\nDEL\n");
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "what an IPAM plugin is owed is settled by a later ADD") {
  write_plugin("forgetful", R"(
    echo $CNI_COMMAND $CNI_CONTAINERID >> /run/verbs
    case $CNI_COMMAND in
      ADD) echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}';;
      DEL) [ -e /run/works ] || { echo '{"code": 77, "msg": "the pool is locked"}'; exit 1; };;
    esac)");
  const Attachment attachment{.network = config({{"ipam", {{"type", "forgetful"}}}})};
  expect_success(attachment.add());
  expect_error(attachment.del(), 77, {});
  sh("touch /run/works");
  const Attachment next{.network = config({{"ipam", {{"type", "forgetful"}}}}), .container = "c2"};
  expect_success(next.add());
  CHECK(read_file("/run/verbs") == "ADD c1\nDEL c1\nADD c2\nDEL c1\n");
  expect_success(next.del());
  expect_no_traces();
}

TEST_CASE_METHOD(NicAndPod, "DEL needs no more of the configuration than the network's name and IPAM") {
  const Snapshot before = snapshot("nic0");
  Attachment attachment{.network = config(kHostLocal)};
  expect_success(attachment.add());
  SECTION("the device is another one") {
    attachment.network["device"] = "not-there";
  }
  SECTION("there is no device") {
    attachment.network.erase("device");
  }
  SECTION("values that ADD would refuse") {
    attachment.network.update(Json{{"mtu", "large"}, {"hwaddr", 7}, {"unheard-of", true}, {"vlan", 9999}, {"wait", 3}});
  }
  SECTION("the type of IPAM was dropped since") {
    attachment.network.erase("ipam");
  }
  expect_success(attachment.del());
  expect_home(before);
  CHECK(reservations().empty());
}
