// The lab's own RDMA devices: that they are what tests of the plugin take them for.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::RdmaMode;
using lab::Scenario;
using support::sh;

}  // namespace

TEST_CASE("a test HCA hangs below its function, has its netdev's port, and follows and survives its moves") {
  const Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 0);
  CHECK(function.rdma_device() == "mlx5_0");
  CHECK(lab::vf(1, 1).rdma_device() == "mlx5_1");
  CHECK(lab::rdma_port("mlx5_0")["netdev"] == function.netdev());
  CHECK(lab::rdma_port("mlx5_0")["state"] == "DOWN");

  Pod pod;
  const auto attachment = lab::attachment(function, pod);
  support::expect_success(attachment.add());
  lab::wait_for_carrier("net1", "pod");
  CHECK(function.rdma_device() == "mlx5_0");
  support::wait_until("the port", [] { return lab::rdma_port("mlx5_0", "pod")["state"] == "ACTIVE"; });
  CHECK(lab::rdma_port("mlx5_0", "pod")["netdev"] == "net1");
  support::expect_success(attachment.del());
  CHECK(lab::rdma_port("mlx5_0")["netdev"] == function.netdev());
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
  CHECK(lab::rdma_port("mlx5_0").is_null());
  support::wait_until("the port", [] { return lab::rdma_port("mlx5_0", "pod")["state"] == "ACTIVE"; });
  const auto seen = sh("ip netns exec pod ibv_devinfo -v -d mlx5_0");
  INFO(seen);
  CHECK(seen.find("PORT_ACTIVE") != std::string::npos);
  CHECK(seen.find("::ffff:10.7.0.1, RoCE v2") != std::string::npos);
  CHECK(seen.find("active_mtu:\t\t4096") != std::string::npos);

  pod.destroy();
  lab::wait_for_netdev(function);
  support::wait_until("the device", [] { return !lab::rdma_port("mlx5_0").is_null(); });
  CHECK(function.rdma_device() == "mlx5_0");
  sh("ip link set " + name + " mtu 1500");
}

TEST_CASE("a test HCA goes with the driver of its function, and can be made again under a name") {
  Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 1);
  scenario.unbind(function);
  CHECK(function.rdma_device() == "");
  CHECK(lab::rdma_port("mlx5_1").is_null());
  scenario.bind(function, "igbvf");
  lab::wait_for_netdev(function);
  lab::create_hca({function, "rail1"});
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

TEST_CASE("a function has several test HCAs, which come and go one by one or together") {
  const Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 2);
  const lab::AddedHca first{{function, "first"}};
  {
    const lab::AddedHca second{{function, "second"}};
    CHECK(function.rdma_devices() == std::vector<std::string>{"first", "second"});
    CHECK(function.char_devices().size() == 2);
    CHECK(lab::rdma_port("first")["netdev"] == lab::rdma_port("second")["netdev"]);
  }
  CHECK(function.rdma_devices() == std::vector<std::string>{"first"});
  lab::create_hca({function, "second"});
  lab::destroy_hca(function);
  CHECK(function.rdma_devices().empty());
  CHECK(function.char_devices().empty());
  lab::create_hca({function, "first"});
}

TEST_CASE("a test HCA does what an adapter can do wrong") {
  const Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 0);
  Pod pod;
  lab::set_hca(function, "gids=no", "mlx5_0");
  auto keys = lab::full_size_with_address();
  keys["rdma"] = "off";
  const auto attachment = lab::attachment(function, pod, keys);
  const auto address = support::expect_success(attachment.add())["ips"][0]["address"].get<std::string>();
  const auto gid = "::ffff:" + address.substr(0, address.find('/')) + ", RoCE v2";
  lab::wait_for_carrier("net1", "pod");
  CHECK_THAT(lab::verbs_text("mlx5_0", "pod"), !containing("RoCE v2"));
  lab::set_hca(function, "gids=yes");
  CHECK_THAT(lab::verbs_text("mlx5_0", "pod"), containing(gid));

  lab::set_hca(function, "state=INIT mtu=1024");
  CHECK_THAT(lab::verbs_text("mlx5_0", "pod"), containing("PORT_INIT") && containing("active_mtu:\t\t1024"));
  lab::set_hca(function, "state=DOWN");
  CHECK_THAT(lab::verbs_text("mlx5_0", "pod"), containing("PORT_DOWN"));
  lab::set_hca(function, "state=auto mtu=auto");
  CHECK_THAT(lab::verbs_text("mlx5_0", "pod"), containing("PORT_ACTIVE") && containing("active_mtu:\t\t4096"));
  support::expect_success(attachment.del());
}

TEST_CASE("a test HCA has ports of several netdevs, or of one that is not its function's") {
  const Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 2);
  const auto other = lab::vf(1, 3);
  const lab::AddedHca two{{function, "two", "port=" + function.address() + " port=" + other.address()}};
  CHECK(lab::rdma_port("two")["netdev"] == function.netdev());
  CHECK_THAT(sh("rdma link show two/2"), containing("netdev " + other.netdev()));

  sh("modprobe bonding max_bonds=0 && ip link add bond0 type bond mode active-backup");
  const lab::AddedHca of_bond{{function, "of_bond", "port=bond0"}};
  CHECK(lab::rdma_port("of_bond")["netdev"] == "bond0");
  sh("ip link del bond0");
  CHECK_FALSE(lab::rdma_port("of_bond").contains("netdev"));
}

TEST_CASE("a test HCA whose driver cannot part with its programs stays where it is") {
  auto layout = lab::kExclusive;
  layout.hcas = {{lab::vf(1, 0), "stuck", "move=no"}, {lab::vf(1, 1), "free"}};
  const Scenario scenario{layout};
  Pod pod;
  CHECK(support::run(support::shell("rdma dev set stuck netns pod")).status != 0);
  sh("rdma dev set free netns pod");
  CHECK(lab::rdma_devices() == std::vector<std::string>{"stuck"});
  CHECK(lab::rdma_devices("pod") == std::vector<std::string>{"free"});
  pod.destroy();
  support::wait_until("the device", [] { return lab::rdma_devices().size() == 2; });
}

TEST_CASE("a function without a netdev has a test HCA all the same") {
  Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 3);
  scenario.unbind(function);
  scenario.bind(function, "pci-stub");
  const lab::AddedHca hca{{function, "alone"}};
  CHECK(function.netdev() == "");
  CHECK(function.rdma_device() == "alone");
  CHECK_FALSE(lab::rdma_port("alone").contains("netdev"));
}
