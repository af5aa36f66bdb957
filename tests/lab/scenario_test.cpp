// That a test cannot leave anything behind unseen.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using support::sh;

/// What looking at the machine says of what has come since.
std::string seen_after(const std::map<std::string, std::string>& before, const std::string& command) {
  sh(command);
  return support::changes(before, lab::look_at_machine());
}

}  // namespace

TEST_CASE("a scenario sees each thing that a test leaves behind") {
  const lab::Scenario scenario{lab::kLayout};
  const auto before = lab::look_at_machine();
  const auto name = lab::vf(1, 2).netdev();
  CHECK(seen_after(before, "true") == "");
  CHECK_THAT(seen_after(before, "ip link set " + name + " mtu 1400"), containing("link " + name));
  sh("ip link set " + name + " mtu 1500");
  CHECK_THAT(seen_after(before, "ip link set " + lab::pf(1).netdev() + " vf 2 vlan 7"), containing("VFs of 0000:01:00.0"));
  sh("ip link set " + lab::pf(1).netdev() + " vf 2 vlan 0");
  CHECK_THAT(seen_after(before, "ip addr add 10.7.0.1/24 dev " + name), containing("address 10.7.0.1"));
  sh("ip addr del 10.7.0.1/24 dev " + name);
  CHECK_THAT(seen_after(before, "ip netns add left"), containing("namespaces"));
  sh("ip netns del left");
  CHECK_THAT(seen_after(before, "echo " + lab::vf(1, 2).address() + " >/sys/module/lab_hca/parameters/create"),
             containing("RDMA device mlx5_2"));
  sh("echo " + lab::vf(1, 2).address() + " >/sys/module/lab_hca/parameters/destroy");
  CHECK_THAT(seen_after(before, "rdma system set netns exclusive"), containing("RDMA mode"));
  sh("rdma system set netns shared");
  CHECK_THAT(seen_after(before, "mkdir -p /var/lib/cni/fabric-nic/devices && echo >/var/lib/cni/fabric-nic/devices/x.json"),
             containing("records"));
  sh("rm /var/lib/cni/fabric-nic/devices/x.json");
  CHECK_THAT(seen_after(before, "mkdir -p /var/lib/cni/addresses/rail && echo >/var/lib/cni/addresses/rail/10.7.0.10"),
             containing("addresses given"));
  sh("rm /var/lib/cni/addresses/rail/10.7.0.10");
}
