// The calls of tests/data/multus-invocations, recorded from Multus, with the devices put in place and the type replaced.

#include <fstream>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

Json recorded(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA_DIR "/multus-invocations/") + name);
  REQUIRE(file);
  return Json::parse(file);
}

/// Recorded calls of host-device, and of stand-ins for a device plugin's resource, are ours; tuning is Debian's.
Call to_call(const Json& invocation) {
  Call call;
  call.variables = invocation["env"];
  call.command = call.variables["CNI_COMMAND"];
  call.variables["CNI_PATH"] = "/usr/lib/cni:/usr/lib/cni:/usr/lib/cni";
  Json input = invocation["stdin"];
  if (input["type"] == "tuning") {
    call.binary = "/usr/lib/cni/tuning";
  } else {
    input["type"] = "fabric-nic";
  }
  call.input = input.dump();
  return call;
}

/// Replays the file in order. A resource's device is not there: ADD says so (11), or that a key is for a device of another kind (2), and
/// DEL succeeds all the same.
void replay(const std::string& name, const std::string& verb) {
  for (const Json& invocation : recorded(name)) {
    if (invocation["env"]["CNI_COMMAND"] == verb) {
      CAPTURE(name, invocation.dump());
      const Answer answer = call(to_call(invocation));
      if (verb == "ADD" && invocation["stdin"].contains("deviceID")) {
        expect_error(answer, std::nullopt, {});
        CHECK((answer.json["code"] == 11 || answer.json["code"] == 2));
      } else {
        expect_success(answer);
      }
    }
  }
}

class Multus : public Sandbox {
 public:
  Multus() {
    for (const char* name : {"prv1", "prv3", "prv5"}) {
      add_nic(name);
      before_[name] = snapshot(name);
    }
  }

  void expect_all_home() {
    for (const auto& [name, before] : before_) {
      INFO(name);
      REQUIRE(has_link(name));
      CHECK(changes(before, snapshot(name)) == "");
    }
    expect_no_traces();
  }

 private:
  std::map<std::string, Snapshot> before_;
};

}  // namespace

TEST_CASE_METHOD(Multus, "Multus: one network") {
  add_pod("pod1");
  replay("thin-plain-nad.json", "ADD");
  CHECK(link_names("pod1") == std::vector<std::string>{"net1"});
  replay("thin-plain-nad.json", "DEL");
  expect_all_home();
}

TEST_CASE_METHOD(Multus, "Multus: a caller without Kubernetes") {
  add_pod("pod1");
  replay("thin-without-kubernetes.json", "ADD");
  CHECK(link_names("pod1") == std::vector<std::string>{"net1"});
  replay("thin-without-kubernetes.json", "DEL");
  expect_all_home();
}

TEST_CASE_METHOD(Multus, "Multus: many networks, with tuning after us, and a second DEL of each") {
  add_pod("pod1");
  replay("thin-many-networks.json", "ADD");
  CHECK(link_names("pod1") == std::vector<std::string>{"data0", "net1", "net5"});
  CHECK(addresses("data0", "pod1") == std::vector<std::string>{"10.77.0.5/24"});
  CHECK(show_link("data0", "pod1")["address"] == "02:11:22:33:44:55");
  CHECK(show_link("data0", "pod1")["mtu"] == 1400);
  replay("thin-many-networks.json", "DEL");
  expect_all_home();
  replay("thin-second-del.json", "DEL");
  expect_all_home();
}

TEST_CASE_METHOD(Multus, "Multus: a pod sandbox of containerd, whose second DEL has an empty CNI_NETNS") {
  const std::string net_ns = recorded("containerd-sandbox.json")[0]["env"]["CNI_NETNS"];
  add_pod(net_ns.substr(net_ns.rfind('/') + 1));
  replay("containerd-sandbox.json", "ADD");
  CHECK(link_names(net_ns.substr(net_ns.rfind('/') + 1)) == std::vector<std::string>{"data0", "net1"});
  replay("containerd-sandbox.json", "DEL");
  expect_all_home();
}
