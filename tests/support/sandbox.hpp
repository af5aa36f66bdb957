#pragma once

#include <optional>
#include <string>

#include "netlink/unique_fd.hpp"
#include "support/process.hpp"

namespace support {

/// A node of its own for one test: network, mount and PID namespaces, with private /proc, /sys, /run, /var/lib/cni, /var/log and /etc/cni.
/// The test runs inside it, so the sandbox *is* the host, and cleaning up is the kernel's job. Fails the test without root.
///
/// Use it as a fixture: `TEST_CASE_METHOD(support::Sandbox, "ADD ...")`. One at a time.
class Sandbox {
 public:
  Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  Sandbox(Sandbox&&) = delete;
  Sandbox& operator=(Sandbox&&) = delete;
  ~Sandbox() = default;

  /// A network namespace to stand for a pod, at /run/netns/NAME.
  void add_pod(const std::string& name = "pod");
  /// One end of a veth pair to stand for a NIC, DOWN. The other end, NAME-peer, is a port of the bridge br0 in the namespace `fabric`,
  /// whose ports take frames of 9216 bytes.
  void add_nic(const std::string& name = "nic0");

 private:
  /// Goes back to the namespaces that it was made in.
  class Origin {
   public:
    Origin();
    Origin(const Origin&) = delete;
    Origin& operator=(const Origin&) = delete;
    Origin(Origin&&) = delete;
    Origin& operator=(Origin&&) = delete;
    ~Origin();

   private:
    netlink::UniqueFd network_;
    netlink::UniqueFd mounts_;
    netlink::UniqueFd processes_;
    netlink::UniqueFd directory_;
  };

  /// Process 1 of the sandbox, whose end is the end of every process in it.
  class Init {
   public:
    Init();
    Init(const Init&) = delete;
    Init& operator=(const Init&) = delete;
    Init(Init&&) = delete;
    Init& operator=(Init&&) = delete;
    ~Init();

   private:
    pid_t pid_ = -1;
  };

  Origin origin_;
  std::optional<Init> init_;
  bool has_fabric_ = false;
};

/// A process that keeps a namespace alive when its path is gone.
class Holder {
 public:
  explicit Holder(const std::string& net_ns);
  /// Its process id inside the sandbox.
  [[nodiscard]] std::string pid() const;

 private:
  std::string mark_;
  Process process_;
};

/// What most tests start from: `nic0` and a namespace `pod`.
class NicAndPod : public Sandbox {
 public:
  NicAndPod() {
    add_nic();
    add_pod();
  }
};

}  // namespace support
