// systemd-udevd with a .link file: it sees a NIC that comes home as a new one, and renames and sets it while the plugin does, or later.
#include <filesystem>
#include <fstream>

#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::Scenario;
using support::expect_success;
using support::sh;

/// A daemon that names the VF `fabric0`, adds altnames and sets alias and MTU.
class Udev {
 public:
  explicit Udev(const lab::Function& function)
      : daemon_((write_link_file(function), support::Program{.arguments = {"/lib/systemd/systemd-udevd"}, .input = {}})) {
    support::wait_until("systemd-udevd", [] { return std::filesystem::exists("/run/udev/control"); });
  }
  Udev(const Udev&) = delete;
  Udev& operator=(const Udev&) = delete;
  Udev(Udev&&) = delete;
  Udev& operator=(Udev&&) = delete;
  ~Udev() {
    std::error_code ignored;
    std::filesystem::remove_all("/etc/systemd/network", ignored);
    std::filesystem::remove_all("/run/udev", ignored);
  }

  static void settle() { sh("udevadm settle --timeout=60"); }

 private:
  static void write_link_file(const lab::Function& function) {
    std::filesystem::create_directories("/etc/systemd/network");
    std::ofstream("/etc/systemd/network/10-fabric.link") << "[Match]\nPath=*-pci-" << function.address() << " pci-" << function.address()
                                                         << "\n[Link]\nName=fabric0\nAlternativeName=fabric-of-rack-7\nAlias=by udev\n"
                                                         << "MTUBytes=1450\n";
  }

  support::Process daemon_;
};

}  // namespace

TEST_CASE("what udev does to a VF on its way home is in nobody's way: not in that of DEL, of the next ADD, or after a namespace died") {
  Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 0);
  const Udev udev{function};
  scenario.make_vfs_anew(1);
  support::wait_until("udev's name", [&] { return function.netdev() == "fabric0"; });
  Udev::settle();
  sh("ip link set fabric0 up");
  lab::wait_for_carrier("fabric0");
  const auto before = support::snapshot("fabric0");
  CHECK(before.at("mtu") == "1450");
  CHECK(before.at("altnames").find("fabric-of-rack-7") != std::string::npos);

  const auto expect_as_before = [&] {
    Udev::settle();
    REQUIRE(function.netdev() == "fabric0");
    CHECK(support::changes(before, support::snapshot("fabric0")) == "");
    support::expect_no_traces();
  };
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    Pod pod;
    const auto attachment = lab::attachment(function, pod, {{"mtu", 9000}});
    expect_success(attachment.add());
    CHECK(support::show_link("net1", "pod")["mtu"] == 9000);
    if (round == 1) {
      pod.destroy();
      expect_success(attachment.del());
    } else {
      if (round == 2) {
        pod.destroy();
        lab::wait_for_netdev(function);
        Udev::settle();
      } else {
        expect_success(attachment.del());
      }
      const Pod next_pod{"next"};
      auto next = lab::attachment(function, next_pod, {{"mtu", 9000}});
      next.container = "c2";
      expect_success(next.add());
      expect_success(attachment.del());
      expect_success(next.del());
    }
    expect_as_before();
  }
}
