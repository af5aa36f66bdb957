// IPAM by delegation: what it gives is set and proved, whatever it does wrong is named, and the NIC comes home.

#include <algorithm>
#include <filesystem>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

/// An IPAM plugin that prints `result` on ADD and notes every verb in /run/verbs.
Json scripted_ipam(const Json& result) {
  write_plugin("scripted", "echo $CNI_COMMAND >> /run/verbs\n[ $CNI_COMMAND = DEL ] || cat <<'END'\n" + result.dump() + "\nEND");
  return Json{{"ipam", {{"type", "scripted"}}}};
}

/// An IPAM plugin that runs `body` on ADD and notes every verb in /run/verbs.
Json misbehaving_ipam(const std::string& body) {
  write_plugin("misbehaving", "echo $CNI_COMMAND >> /run/verbs\n[ $CNI_COMMAND = ADD ] || exit 0\n" + body);
  return Json{{"ipam", {{"type", "misbehaving"}}}};
}

std::string verbs() {
  return sh("cat /run/verbs 2>/dev/null || true");
}

Json one_address(const std::string& address = "10.0.0.5/24") {
  return Json{{"cniVersion", "1.0.0"}, {"ips", Json::array({Json{{"address", address}}})}};
}

/// The routes of a table in the pod whose destination this is.
Json route(const std::string& destination, const std::string& family = "-4", const std::string& table = "main") {
  return ip_json("-n pod " + family + " -d route show table " + table + " " + destination);
}

void give_pod_a_default_route() {
  sh("ip -n pod link add eth0 type bridge && ip -n pod link set eth0 up && ip -n pod addr add 172.16.0.2/24 dev eth0 && "
     "ip -n pod addr add 2001:db8::2/64 dev eth0 nodad && ip -n pod route add default via 172.16.0.1 && "
     "ip -n pod route add default via 2001:db8::1");
}

/// How many of the two families have a default route over the interface, also as one of several next hops.
int count_default_routes(const std::string& interface) {
  int count = 0;
  for (const char* family : {"-4", "-6"}) {
    count += sh(std::string("ip -n pod ") + family + " route show default").find("dev " + interface + " ") != std::string::npos ? 1 : 0;
  }
  return count;
}

/// Every other call in this file fails: with this text, the NIC at home, and IPAM told to take back what it may have given.
std::string expect_add_fails(const Json& keys, std::optional<int> code, std::initializer_list<std::string_view> words) {
  const Snapshot before = snapshot("nic0");
  const std::string text = expect_error(Attachment{.network = config(keys)}.add(), code, words);
  expect_home(before);
  CHECK(link_names("pod") == std::vector<std::string>{});
  return text;
}

bool has_process(const std::string& name) {
  return run(shell("grep -qx '" + name + "' /proc/[0-9]*/comm")).status == 0;
}

}  // namespace

TEST_CASE_METHOD(NicAndPod, "host-local: address, gateway and routes are in the pod and in the result, and DEL frees the address") {
  const Snapshot before = snapshot("nic0");
  const Json ranges = Json::array({Json::array({Json{{"subnet", "10.7.0.0/24"}, {"gateway", "10.7.0.1"}}})});
  const Json ipam{{"type", "host-local"}, {"ranges", ranges}, {"routes", Json::array({Json{{"dst", "10.8.0.0/16"}}})}};
  const Attachment attachment{.network = config({{"ipam", ipam}})};
  const Json result = expect_success(attachment.add());
  CHECK(addresses("net1", "pod") == std::vector<std::string>{"10.7.0.2/24"});
  REQUIRE(result["ips"].size() == 1);
  CHECK(result["ips"][0] == Json{{"address", "10.7.0.2/24"}, {"gateway", "10.7.0.1"}, {"interface", 0}});
  REQUIRE(route("10.8.0.0/16").size() == 1);
  CHECK(route("10.8.0.0/16")[0]["gateway"] == "10.7.0.1");
  CHECK(route("10.8.0.0/16")[0]["dev"] == "net1");
  CHECK(std::filesystem::exists("/var/lib/cni/networks/rail/10.7.0.2"));
  expect_success(attachment.del());
  CHECK_FALSE(std::filesystem::exists("/var/lib/cni/networks/rail/10.7.0.2"));
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "static: IPv4 and IPv6 addresses, routes and DNS") {
  const Json ipam{{"type", "static"},
                  {"addresses", Json::array({Json{{"address", "10.7.0.9/24"}, {"gateway", "10.7.0.1"}},
                                             Json{{"address", "fd00:7::9/64"}, {"gateway", "fd00:7::1"}}})},
                  {"routes", Json::array({Json{{"dst", "10.8.0.0/16"}}, Json{{"dst", "fd00:8::/48"}, {"gw", "fd00:7::5"}}})},
                  {"dns", {{"nameservers", {"10.7.0.53"}}}}};
  const Json result = expect_success(Attachment{.network = config({{"ipam", ipam}})}.add());
  CHECK(addresses("net1", "pod") == std::vector<std::string>{"10.7.0.9/24", "fd00:7::9/64"});
  CHECK(route("10.8.0.0/16")[0]["gateway"] == "10.7.0.1");
  CHECK(route("fd00:8::/48", "-6")[0]["gateway"] == "fd00:7::5");
  CHECK(result["ips"].size() == 2);
  CHECK(result["routes"].size() == 2);
  CHECK(result["dns"]["nameservers"] == Json{"10.7.0.53"});
}

TEST_CASE_METHOD(NicAndPod, "routes of 1.1.0 have their mtu, advmss, priority, table and scope in the kernel and in the result") {
  const Json routes = Json::array({
      Json{{"dst", "10.1.0.0/16"}, {"gw", "10.0.0.1"}, {"mtu", 1400}, {"advmss", 1300}, {"priority", 50}},
      Json{{"dst", "10.2.0.0/16"}, {"gw", "10.0.0.1"}, {"table", 100}},
      Json{{"dst", "10.3.0.0/16"}, {"scope", 253}},
      Json{{"dst", "fd00:1::/48"}, {"gw", "fd00::1"}, {"mtu", 1420}, {"advmss", 1350}, {"priority", 70}, {"table", 300}},
  });
  const Json ips = Json::array({Json{{"address", "10.0.0.5/24"}}, Json{{"address", "fd00::5/64"}}});
  Json keys = scripted_ipam({{"cniVersion", "1.1.0"}, {"ips", ips}, {"routes", routes}});
  keys["cniVersion"] = "1.1.0";
  const Json result = expect_success(Attachment{.network = config(keys)}.add());
  CHECK(result["routes"] == routes);

  const Json first = route("10.1.0.0/16");
  REQUIRE(first.size() == 1);
  CHECK(first[0]["gateway"] == "10.0.0.1");
  CHECK(first[0]["metric"] == 50);
  CHECK(first[0]["metrics"][0]["mtu"] == 1400);
  CHECK(first[0]["metrics"][0]["advmss"] == 1300);
  CHECK(route("10.2.0.0/16").empty());
  CHECK(route("10.2.0.0/16", "-4", "100").size() == 1);
  REQUIRE(route("10.3.0.0/16").size() == 1);
  CHECK(route("10.3.0.0/16")[0]["scope"] == "link");
  CHECK_FALSE(route("10.3.0.0/16")[0].contains("gateway"));
  const Json sixth = route("fd00:1::/48", "-6", "300");
  REQUIRE(sixth.size() == 1);
  CHECK(sixth[0]["metric"] == 70);
  CHECK(sixth[0]["metrics"][0]["mtu"] == 1420);
  CHECK(sixth[0]["metrics"][0]["advmss"] == 1350);
}

TEST_CASE_METHOD(NicAndPod, "a route without a gateway goes over the gateway of its family, or is on the link where there is none") {
  const Json ips = Json::array({Json{{"address", "10.0.0.5/24"}, {"gateway", "10.0.0.1"}}, Json{{"address", "fd00::5/64"}}});
  const Json routes = Json::array({Json{{"dst", "10.1.0.0/16"}}, Json{{"dst", "fd00:1::/48"}}});
  expect_success(Attachment{.network = config(scripted_ipam({{"cniVersion", "1.0.0"}, {"ips", ips}, {"routes", routes}}))}.add());
  CHECK(route("10.1.0.0/16")[0]["gateway"] == "10.0.0.1");
  REQUIRE(route("fd00:1::/48", "-6").size() == 1);
  CHECK_FALSE(route("fd00:1::/48", "-6")[0].contains("gateway"));
}

TEST_CASE_METHOD(NicAndPod, "a default route from IPAM is dropped and named where the pod has one, or kept where it is to be kept") {
  const Json ips =
      Json::array({Json{{"address", "10.0.0.5/24"}, {"gateway", "10.0.0.1"}}, Json{{"address", "fd00::5/64"}, {"gateway", "fd00::1"}}});
  const Json routes = Json::array({Json{{"dst", "0.0.0.0/0"}}, Json{{"dst", "::/0"}, {"gw", "fd00::1"}}, Json{{"dst", "10.1.0.0/16"}}});
  Json keys = scripted_ipam({{"cniVersion", "1.0.0"}, {"ips", ips}, {"routes", routes}});
  SECTION("dropped") {
    give_pod_a_default_route();
    const Answer added = Attachment{.network = config(keys)}.add();
    const Json result = expect_success(added);
    CHECK(count_default_routes("net1") == 0);
    CHECK(count_default_routes("eth0") == 2);
    CHECK(result["routes"].size() == 1);
    CHECK(missing_words(added.err, {"0.0.0.0/0", "::/0"}) == "");
    CHECK(sysctl("net/ipv6/conf/net1/accept_ra", "pod") == "0");
  }
  SECTION("kept, because it is configured") {
    give_pod_a_default_route();
    // The same metric as that of the cluster network would clash in IPv4, so the route of the fabric comes with its own.
    sh("ip -n pod route replace default via 172.16.0.1 metric 10 && ip -n pod route del default via 172.16.0.1 metric 0");
    keys["defaultRoute"] = "keep";
    const Json result = expect_success(Attachment{.network = config(keys)}.add());
    CHECK(count_default_routes("net1") == 2);
    CHECK(result["routes"].size() == 3);
  }
  SECTION("kept, because the pod has none") {
    const Json result = expect_success(Attachment{.network = config(keys)}.add());
    CHECK(count_default_routes("net1") == 2);
    CHECK(result["routes"].size() == 3);
  }
  SECTION("judged by family") {
    sh("ip -n pod link add eth0 type bridge && ip -n pod link set eth0 up && ip -n pod addr add 172.16.0.2/24 dev eth0 && "
       "ip -n pod route add default via 172.16.0.1");
    expect_success(Attachment{.network = config(keys)}.add());
    CHECK(count_default_routes("eth0") == 1);
    CHECK(count_default_routes("net1") == 1);
    CHECK(ip_json("-n pod -6 route show default dev net1").size() == 1);
  }
}

TEST_CASE_METHOD(NicAndPod, "IPv6 works for the NIC in a pod that has it disabled for new interfaces") {
  sh("ip netns exec pod sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(scripted_ipam(one_address("fd00::5/64")))};
  expect_success(attachment.add());
  CHECK(addresses("net1", "pod") == std::vector<std::string>{"fd00::5/64"});
  CHECK(sysctl("net/ipv6/conf/net1/disable_ipv6", "pod") == "0");
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "an IPv6 address that somebody else has is error 102 and the NIC comes home") {
  sh("ip -n fabric addr add fd00::5/64 dev br0 nodad");
  expect_add_fails(scripted_ipam(one_address("fd00::5/64")), 102, {"fd00::5"});
  CHECK(verbs() == "ADD\nDEL\n");
}

TEST_CASE_METHOD(NicAndPod, "an IPv6 address that nobody else has costs less than a second and can be used at once") {
  sh("ip -n fabric addr add fd00::9/64 dev br0 nodad");
  const Attachment without{.network = config(scripted_ipam(one_address("10.0.0.5/24")))};
  const Answer reference = without.add();
  expect_success(reference);
  expect_success(without.del());
  const Answer added = Attachment{.network = config(scripted_ipam(one_address("fd00::5/64")))}.add();
  expect_success(added);
  sh("ip netns exec pod ping -6 -c 1 -W 5 -I fd00::5 fd00::9");
  CHECK(added.elapsed < reference.elapsed + std::chrono::milliseconds{1000});
}

TEST_CASE_METHOD(NicAndPod, "the neighbours are told where the addresses are now") {
  const Process sniffer(
      shell("exec ip netns exec fabric tcpdump -Z root -i nic0-peer -n -e -l -vv 'arp or icmp6' > /run/packets 2> /run/tcpdump"));
  wait_until("tcpdump", [] { return run(shell("grep -q 'listening on' /run/tcpdump")).status == 0; });
  const Json ips = Json::array({Json{{"address", "10.0.0.5/24"}}, Json{{"address", "fd00::5/64"}}});
  Json keys = scripted_ipam({{"cniVersion", "1.0.0"}, {"ips", ips}});
  keys["mac"] = "02:00:00:00:00:42";
  expect_success(Attachment{.network = config(keys)}.add());
  const auto seen = [](const std::string& words) {
    return run(shell("tr '\\n' ' ' < /run/packets | sed 's/ 02:00:00:00:00:42 > /\\n&/g' | grep -qE '" + words + "'")).status == 0;
  };
  wait_until("a gratuitous ARP",
             [&] { return seen("(who-has|Request who-has) 10.0.0.5 .*tell 10.0.0.5|Reply 10.0.0.5 is-at 02:00:00:00:00:42"); });
  wait_until("an unsolicited neighbour advertisement", [&] {
    return seen("neighbor advertisement.*tgt is fd00::5.*override|neighbor advertisement.*tgt is fd00::5, Flags \\[.*override");
  });
}

TEST_CASE_METHOD(NicAndPod, "an empty ipam is none: the NIC is up in the pod, without addresses, and no plugin is looked for") {
  Attachment attachment{.network = config({{"ipam", Json::object()}})};
  attachment.network["ipam"] = Json::object();
  attachment.path = "/nowhere";
  const Json result = expect_success(attachment.add());
  CHECK(has_flag(show_link("net1", "pod"), "UP"));
  CHECK(addresses("net1", "pod").empty());
  CHECK(result.value("ips", Json::array()).empty());
  expect_success(attachment.del());
}

TEST_CASE_METHOD(NicAndPod, "the IPAM plugin gets the same environment and the same stdin, byte for byte, on ADD and on DEL") {
  write_plugin("recorder", R"(cat > /run/stdin-$CNI_COMMAND; env | grep ^CNI_ | sort > /run/env-$CNI_COMMAND
    [ $CNI_COMMAND = DEL ] || echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}')");
  Call call = Attachment{.args = "IgnoreUnknown=1;K8S_POD_NAME=job-0"}.to_call("ADD");
  call.input =
      "\n{ \"name\" : \"rail\",\t\"type\":\"fabric-nic\",  \"device\":\"nic0\", \"cniVersion\":\"1.0.0\",\n"
      "  \"example.com/x\": {\"k\": [1, 2.50, \"\\u00e9\"]}, \"ipam\":{\"type\":\"recorder\", \"z\": 1, \"a\": 2} }\n\n";
  expect_success(support::call(call));
  CHECK(sh("cat /run/stdin-ADD") == call.input);
  const std::string common =
      "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=job-0\nCNI_COMMAND=%\nCNI_CONTAINERID=c1\nCNI_IFNAME=net1\nCNI_NETNS=/run/netns/pod\n"
      "CNI_PATH=/run/plugins:/usr/lib/cni\n";
  const auto with_verb = [&](const std::string& verb) { return std::string(common).replace(common.find('%'), 1, verb); };
  CHECK(sh("cat /run/env-ADD") == with_verb("ADD"));
  call.command = "DEL";
  expect_success(support::call(call));
  CHECK(sh("cat /run/stdin-DEL") == call.input);
  CHECK(sh("cat /run/env-DEL") == with_verb("DEL"));
}

TEST_CASE_METHOD(NicAndPod, "the IPAM plugin's DEL comes when the NIC has left the pod") {
  write_plugin("watcher", R"(if [ $CNI_COMMAND = DEL ]; then ip -n pod -br link show > /run/links
    else echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}'; fi)");
  const Attachment attachment{.network = config({{"ipam", {{"type", "watcher"}}}})};
  expect_success(attachment.add());
  expect_success(attachment.del());
  CHECK(sh("grep -c net1 /run/links || true") == "0\n");
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin that fails keeps its code and is named") {
  expect_add_fails(misbehaving_ipam(R"(echo '{"code": 42, "msg": "the pool is empty", "details": "ask for more"}'; exit 1)"), 42,
                   {"misbehaving", "the pool is empty", "ask for more"});
  CHECK(verbs() == "ADD\nDEL\n");
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin that misbehaves is named and the NIC comes home") {
  const std::string body =
      GENERATE(as<std::string>{}, "echo garbage", "true", "echo garbage; exit 1", "exit 3", "kill -KILL $$", "echo '[]'",
               "echo '{\"ips\": 7}'", "echo '{\"cniVersion\": \"1.0.0\", \"ips\": [{\"address\": \"10.0.0.5\"}]}'",
               "echo '{\"cniVersion\": \"7.0.0\", \"ips\": []}'", "echo complaint >&2; exit 1");
  CAPTURE(body);
  const std::string text = expect_add_fails(misbehaving_ipam(body), std::nullopt, {"misbehaving"});
  if (body.starts_with("echo complaint")) {
    CHECK(missing_words(text, {"complaint"}) == "");
  }
  CHECK(verbs() == "ADD\nDEL\n");
}

TEST_CASE_METHOD(NicAndPod, "an index that leads to no interface, in what IPAM gave, is refused and the NIC comes home") {
  Json result = one_address();
  result["ips"][0]["interface"] = 3;
  expect_add_fails(scripted_ipam(result), std::nullopt, {"scripted", "interface", "3"});
}

TEST_CASE_METHOD(NicAndPod, "what the kernel does not take of what IPAM gave is named, and IPAM gets it back") {
  SECTION("an address") {
    expect_add_fails(scripted_ipam(one_address("ff02::5/64")), std::nullopt, {"ff02::5/64"});
  }
  SECTION("a route over a gateway that cannot be reached") {
    Json result = one_address();
    result["routes"] = Json::array({Json{{"dst", "10.1.0.0/16"}, {"gw", "192.0.2.1"}}});
    expect_add_fails(scripted_ipam(result), std::nullopt, {"10.1.0.0/16", "192.0.2.1"});
  }
  CHECK(verbs() == "ADD\nDEL\n");
}

TEST_CASE_METHOD(NicAndPod, "an address that was allocated before IPAM failed is free again") {
  write_plugin("half", R"(input=$(cat)
    answer=$(echo "$input" | sed 's/"half"/"host-local"/' | /usr/lib/cni/host-local) || exit 1
    [ $CNI_COMMAND = DEL ] || { ls /var/lib/cni/networks/rail > /run/allocated; exit 1; })");
  const Json ranges = Json::array({Json::array({Json{{"subnet", "10.7.0.0/24"}}})});
  expect_add_fails({{"ipam", {{"type", "half"}, {"ranges", ranges}}}}, std::nullopt, {"half"});
  CHECK(missing_words(sh("cat /run/allocated"), {"10.7.0.2"}) == "");
  CHECK_FALSE(std::filesystem::exists("/var/lib/cni/networks/rail/10.7.0.2"));
}

TEST_CASE_METHOD(NicAndPod, "3 MB of stderr from an IPAM plugin do no harm") {
  SECTION("when it succeeds") {
    expect_success(
        Attachment{.network = config(misbehaving_ipam("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo '" + one_address().dump() + "'"))}
            .add());
    CHECK(addresses("net1", "pod").size() == 1);
  }
  SECTION("when it fails") {
    const std::string text =
        expect_add_fails(misbehaving_ipam("head -c 3000000 /dev/zero | tr '\\0' x >&2; exit 1"), std::nullopt, {"misbehaving"});
    CHECK(text.size() < 100000);
  }
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin that prints without end is stopped") {
  expect_add_fails(misbehaving_ipam("exec yes"), std::nullopt, {"misbehaving"});
  CHECK_FALSE(has_process("yes"));
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin that never reads its stdin does no harm") {
  Json keys = misbehaving_ipam("exec <&-; echo '" + one_address().dump() + "'");
  keys["example.com/ballast"] = std::string(900000, 'x');
  expect_success(Attachment{.network = config(keys)}.add());
}

TEST_CASE_METHOD(NicAndPod, "a grandchild that keeps the IPAM plugin's output open holds up neither ADD nor DEL") {
  const Answer added = Attachment{.network = config(misbehaving_ipam("sleep 300 & echo '" + one_address().dump() + "'"))}.add();
  expect_success(added);
  CHECK(added.elapsed < std::chrono::milliseconds{20'000});
  const Answer deleted = Attachment{.network = config(Json{{"ipam", {{"type", "misbehaving"}}}})}.del();
  expect_success(deleted);
  CHECK(deleted.elapsed < std::chrono::milliseconds{20'000});
}

TEST_CASE_METHOD(NicAndPod, "a hung IPAM plugin is killed with its children after a minute, and the NIC comes home", "[slow]") {
  expect_add_fails(misbehaving_ipam("trap '' TERM; sleep 1000 & sleep 1001 & wait"), std::nullopt, {"misbehaving"});
  CHECK_FALSE(has_process("sleep"));
  CHECK_FALSE(has_process("misbehaving"));
  CHECK(verbs() == "ADD\nDEL\n");
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin that does not know the caller's version is named with the versions it knows") {
  const Json ranges = Json::array({Json::array({Json{{"subnet", "10.7.0.0/24"}}})});
  expect_add_fails({{"cniVersion", "1.1.0"}, {"ipam", {{"type", "host-local"}, {"ranges", ranges}}}}, 1,
                   {"host-local", "1.1.0", "0.4.0", "1.0.0"});
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin that is nowhere in CNI_PATH is named with CNI_PATH, before the NIC is touched") {
  const std::string type = GENERATE(as<std::string>{}, "not-there", "a-directory");
  sh("mkdir -p /run/plugins/a-directory");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"ipam", {{"type", type}}}})};
  expect_error(attachment.under(strace({"-e", "trace=" + kSends})).add(), std::nullopt, {type, "/run/plugins:/usr/lib/cni"});
  CHECK(traced_moves().empty());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "an IPAM plugin that cannot be started is named, and is owed nothing") {
  sh("mkdir -p /run/plugins && touch /run/plugins/not-executable && echo '#!/no/such/interpreter' > /run/plugins/broken && "
     "chmod 755 /run/plugins/broken");
  const std::string type = GENERATE(as<std::string>{}, "not-executable", "broken");
  expect_add_fails({{"ipam", {{"type", type}}}}, std::nullopt, {"/run/plugins/" + type});
}

TEST_CASE_METHOD(NicAndPod, "DEL goes on without an IPAM plugin that has been uninstalled, and says so") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(scripted_ipam(one_address()))};
  expect_success(attachment.add());
  std::filesystem::remove("/run/plugins/scripted");
  expect_error(attachment.del(), std::nullopt, {"scripted"});
  REQUIRE(has_link("nic0"));
  CHECK(changes(before, snapshot("nic0")) == "");
}
