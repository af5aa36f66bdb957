// The pod's namespace is gone before DEL comes: the kernel brings the NIC back to the host by itself, a moment later, under the pod's name
// and with the pod's settings.
#include "lab.hpp"
#include "support/catch.hpp"
#include "support/sandbox.hpp"

namespace {

using lab::Configured;
using lab::Function;
using lab::Pod;
using lab::Scenario;
using support::expect_success;
using support::Json;
using support::sh;

/// A NIC in a pod that has changed it.
struct Attached {
  explicit Attached(const Function& which)
      : function(which), nic(which), attachment(lab::attachment(which, pod, lab::full_size_with_address())) {
    expect_success(attachment.add());
    sh("ip -n pod link property add dev net1 altname tenant && ip -n pod link set net1 alias tenant txqueuelen 77");
  }

  void die() {
    REQUIRE(lab::reserved_addresses().size() == 1);
    pod.destroy();
  }

  void expect_home_after_del() {
    expect_success(attachment.del());
    nic.expect_home();
    CHECK(lab::reserved_addresses().empty());
  }

  Function function;
  Configured nic;
  Pod pod;
  support::Attachment attachment;
};

/// An interface of the host that has taken a name.
class Squatter {
 public:
  explicit Squatter(const std::string& name) : name_(name) { sh("ip link add " + name + " type dummy"); }
  Squatter(const Squatter&) = delete;
  Squatter& operator=(const Squatter&) = delete;
  Squatter(Squatter&&) = delete;
  Squatter& operator=(Squatter&&) = delete;
  ~Squatter() { leave(); }

  void leave() {
    if (!name_.empty()) {
      sh("ip link del " + std::exchange(name_, ""));
    }
  }

 private:
  std::string name_;
};

}  // namespace

TEST_CASE("DEL after the namespace died restores a VF that the kernel has brought back") {
  const Scenario scenario{lab::kLayout};
  Attached attached{lab::vf(1, 0)};
  attached.die();
  lab::wait_for_netdev(attached.function);
  CHECK(attached.function.netdev() == "net1");
  attached.expect_home_after_del();
}

TEST_CASE("DEL right after the namespace died waits for the VF to come back") {
  const Scenario scenario{lab::kLayout};
  // Now and then the kernel is faster than the call.
  bool was_away = false;
  for (int attempt = 0; attempt < 5 && !was_away; ++attempt) {
    Attached attached{lab::vf(1, 0)};
    attached.die();
    was_away = attached.function.netdev().empty();
    attached.expect_home_after_del();
  }
  CHECK(was_away);
}

TEST_CASE("DEL after the namespace died restores a PF") {
  const Scenario scenario{lab::kLayout};
  Attached attached{lab::pf(2)};
  attached.die();
  attached.expect_home_after_del();
}

TEST_CASE("DEL after the namespace died finds a VF whose name in the pod was taken in the host") {
  const Scenario scenario{lab::kLayout};
  Attached attached{lab::vf(1, 1)};
  const Squatter squatter{"net1"};
  attached.die();
  lab::wait_for_netdev(attached.function);
  CHECK(attached.function.netdev().starts_with("dev"));
  attached.expect_home_after_del();
  CHECK(support::show_link("net1")["linkinfo"]["info_kind"] == "dummy");
}

TEST_CASE("DEL after the namespace died leaves the name of a VF to who took it in the host, and an altname too") {
  const Scenario scenario{lab::kLayout};
  Attached attached{lab::vf(1, 1)};
  Squatter squatter{Configured::kName};
  sh("ip link property add dev rail0 altname left-rail");
  attached.die();
  expect_success(attached.attachment.del());
  CHECK(support::show_link("rail0")["linkinfo"]["info_kind"] == "dummy");
  const auto name = attached.function.netdev();
  CHECK(name.starts_with("dev"));
  CHECK(support::show_link(name)["altnames"] == Json::array({"enp1s16f9000np0s0v0"}));
  support::expect_no_traces();

  squatter.leave();
  sh("ip link set " + name + " down && ip link set " + name + " name rail0 && ip link property add dev rail0 altname left-rail");
  sh("ip link set rail0 up");
  attached.nic.expect_home();
}

TEST_CASE("DEL takes a VF out of a namespace that has lost its name and is held by a process") {
  const Scenario scenario{lab::kLayout};
  Attached attached{lab::vf(1, 0)};
  const support::Holder holder{"pod"};
  attached.die();
  attached.expect_home_after_del();
}

TEST_CASE("the next ADD restores a VF whose namespace died without a DEL, and its late DEL changes nothing") {
  const Scenario scenario{lab::kLayout};
  Attached attached{lab::vf(1, 0)};
  attached.die();
  const Pod next_pod{"next"};
  auto next = lab::attachment(attached.function, next_pod, lab::full_size_with_address());
  next.container = "c2";
  expect_success(next.add());
  CHECK(support::show_link("net1", "next")["parentdev"] == attached.function.address());
  CHECK(lab::reserved_addresses().size() == 1);

  expect_success(attached.attachment.del());
  CHECK(support::show_link("net1", "next")["parentdev"] == attached.function.address());
  CHECK(lab::reserved_addresses().size() == 1);
  expect_success(next.del());
  attached.nic.expect_home();
  CHECK(lab::reserved_addresses().empty());
}
