// Debian's dhcp plugin with its daemon, and a DHCP server in the fabric.

#include <filesystem>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

const Json kDhcp{{"ipam", {{"type", "dhcp"}}}};

/// The DHCP server writes a line for each lease that is in force.
std::string leases() {
  return sh("cat /run/leases 2>/dev/null || true");
}

class Dhcp : public NicAndPod {
 public:
  Dhcp() {
    sh("ip -n fabric addr add 10.9.0.1/24 dev br0");
    server_.emplace(
        shell("exec ip netns exec fabric dnsmasq --keep-in-foreground --conf-file=/dev/null --port=0 --interface=br0 --bind-interfaces "
              "--dhcp-range=10.9.0.100,10.9.0.200,255.255.255.0,1h --dhcp-authoritative --no-ping --dhcp-leasefile=/run/leases "
              "--pid-file= --user=root --log-facility=/run/dnsmasq.log"));
    daemon_.emplace(shell("exec /usr/lib/cni/dhcp daemon"));
    wait_until("the DHCP server and the daemon",
               [] { return std::filesystem::exists("/run/cni/dhcp.sock") && run(shell("grep -q started /run/dnsmasq.log")).status == 0; });
  }

 private:
  std::optional<Process> server_;
  std::optional<Process> daemon_;
};

}  // namespace

TEST_CASE_METHOD(Dhcp, "dhcp: ADD gets a lease with the link up, and DEL gives it back before the NIC goes home") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kDhcp)};
  const Json result = expect_success(attachment.add());
  const std::vector<std::string> in_pod = addresses("net1", "pod");
  REQUIRE(in_pod.size() == 1);
  CHECK(in_pod[0].starts_with("10.9.0.1"));
  CHECK(result["ips"][0]["address"] == in_pod[0]);
  CHECK(leases().find(in_pod[0].substr(0, in_pod[0].find('/'))) != std::string::npos);

  expect_success(attachment.del());
  wait_until("the server to have the lease back", [] { return leases().empty(); });
  expect_home(before);
}

TEST_CASE_METHOD(Dhcp, "dhcp: the server's default route is dropped where the pod has one") {
  sh("ip -n pod link add eth0 type bridge && ip -n pod link set eth0 up && ip -n pod addr add 172.16.0.2/24 dev eth0 && "
     "ip -n pod route add default via 172.16.0.1");
  const Answer added = Attachment{.network = config(kDhcp)}.add();
  expect_success(added);
  CHECK(ip_json("-n pod -4 route show default").size() == 1);
  CHECK(missing_words(added.err, {"0.0.0.0/0"}) == "");
}

TEST_CASE_METHOD(NicAndPod, "dhcp: a daemon that does not run is named by its socket, and the NIC is home") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kDhcp)};
  expect_error(attachment.add(), std::nullopt, {"/run/cni/dhcp.sock"});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "dhcp: DEL brings the NIC home when the daemon is gone") {
  sh("ip -n fabric addr add 10.9.0.1/24 dev br0");
  write_plugin("dhcp", R"([ -e /run/cni/dhcp.sock ] || { echo '{"code": 999, "msg": "no daemon"}'; exit 1; }
    [ $CNI_COMMAND = DEL ] || echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24"}]}')");
  sh("mkdir -p /run/cni && touch /run/cni/dhcp.sock");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kDhcp)};
  expect_success(attachment.add());
  std::filesystem::remove("/run/cni/dhcp.sock");
  expect_error(attachment.del(), std::nullopt, {"dhcp"});
  REQUIRE(has_link("nic0"));
  CHECK(changes(before, snapshot("nic0")) == "");
}

TEST_CASE_METHOD(NicAndPod, "dhcp: its DEL comes while the NIC is in the pod and up") {
  write_plugin("dhcp", R"(if [ $CNI_COMMAND = DEL ]; then ip -n pod -br link show net1 > /run/links
    else echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.9.0.5/24"}]}'; fi)");
  sh("mkdir -p /run/cni && touch /run/cni/dhcp.sock");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kDhcp)};
  expect_success(attachment.add());
  expect_success(attachment.del());
  CHECK(missing_words(sh("cat /run/links"), {"net1", "UP"}) == "");
  expect_home(before);
}
