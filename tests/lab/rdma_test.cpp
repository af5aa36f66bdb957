// The lab's own RDMA devices: that they are what tests of the plugin take them for.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::RdmaMode;
using lab::Scenario;
using support::Json;
using support::sh;

/// The port of a device as `rdma link` shows it in a namespace; null when it is not there.
Json port(const std::string& device, const std::string& net_ns = {}) {
  const auto in = net_ns.empty() ? std::string{} : "ip netns exec " + net_ns + " ";
  for (const auto& link : Json::parse(sh(in + "rdma -j link"))) {
    if (link["ifname"] == device) {
      return link;
    }
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a test HCA hangs below its function, has its netdev's port, and follows and survives its moves") {
  const Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 0);
  CHECK(function.rdma_device() == "mlx5_0");
  CHECK(lab::vf(1, 1).rdma_device() == "mlx5_1");
  CHECK(port("mlx5_0")["netdev"] == function.netdev());
  CHECK(port("mlx5_0")["state"] == "DOWN");

  Pod pod;
  const auto attachment = lab::attachment(function, pod);
  support::expect_success(attachment.add());
  lab::wait_for_carrier("net1", "pod");
  CHECK(function.rdma_device() == "mlx5_0");
  support::wait_until("the port", [] { return port("mlx5_0", "pod")["state"] == "ACTIVE"; });
  CHECK(port("mlx5_0", "pod")["netdev"] == "net1");
  support::expect_success(attachment.del());
  CHECK(port("mlx5_0")["netdev"] == function.netdev());
}

TEST_CASE("in exclusive mode a test HCA moves to the pod, works there, and comes back when the namespace dies") {
  auto layout = lab::kLayout;
  layout.mode = RdmaMode::exclusive;
  const Scenario scenario{layout};
  const auto function = lab::vf(1, 0);
  const auto name = function.netdev();
  Pod pod;
  sh("rdma dev set mlx5_0 netns pod && ip link set " + name + " netns pod && ip -n pod link set " + name + " mtu 9000 up");
  sh("ip -n pod addr add 10.7.0.1/24 dev " + name);
  lab::wait_for_carrier(name, "pod");
  CHECK(port("mlx5_0").is_null());
  support::wait_until("the port", [] { return port("mlx5_0", "pod")["state"] == "ACTIVE"; });
  const auto seen = sh("ip netns exec pod ibv_devinfo -v -d mlx5_0");
  INFO(seen);
  CHECK(seen.find("PORT_ACTIVE") != std::string::npos);
  CHECK(seen.find("::ffff:10.7.0.1, RoCE v2") != std::string::npos);
  CHECK(seen.find("active_mtu:\t\t4096") != std::string::npos);

  pod.destroy();
  lab::wait_for_netdev(function);
  support::wait_until("the device", [] { return !port("mlx5_0").is_null(); });
  CHECK(function.rdma_device() == "mlx5_0");
  sh("ip link set " + name + " mtu 1500");
}

TEST_CASE("a test HCA goes with the driver of its function, and can be made again under a name") {
  Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 1);
  scenario.unbind(function);
  CHECK(function.rdma_device() == "");
  CHECK(port("mlx5_1").is_null());
  scenario.bind(function, "igbvf");
  lab::wait_for_netdev(function);
  sh("echo '" + function.address() + " rail1' >/sys/module/lab_hca/parameters/create");
  CHECK(function.rdma_device() == "rail1");
}

TEST_CASE("an rxe device has GIDs of its netdev's addresses") {
  const Scenario scenario{{.cards = {{{.vfs = 0, .mtu = 1500}, {.vfs = 0, .mtu = 9000}}}, .rxes = {lab::pf(1), lab::pf(2)}}};
  sh("ip addr add 10.7.0.1/24 dev " + lab::pf(2).netdev());
  support::wait_until("the GID", [] { return sh("ibv_devinfo -v -d rxe_2").find("::ffff:10.7.0.1, RoCE v2") != std::string::npos; });
  CHECK(sh("ibv_devinfo -d rxe_1").find("active_mtu:\t\t1024") != std::string::npos);
  CHECK(sh("ibv_devinfo -d rxe_2").find("active_mtu:\t\t4096") != std::string::npos);
  sh("ip addr del 10.7.0.1/24 dev " + lab::pf(2).netdev());
}
