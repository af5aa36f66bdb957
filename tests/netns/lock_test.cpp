// The device lock and the mark that a DEL leaves for a running ADD.

#include "cni/lock.hpp"

#include <unistd.h>

#include <filesystem>
#include <optional>

#include "cni/error.hpp"
#include "netlink/error.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/sandbox.hpp"

using cni::Deadline;
using cni::DeviceLock;
using support::Sandbox;

namespace {

constexpr std::chrono::milliseconds kShort{30};
constexpr std::chrono::milliseconds kLong{10'000};

/// The sentence of the error that getting the lock ends with, which has to be of code 11; empty when the lock is got.
std::string failure(const std::string& key) {
  try {
    static_cast<void>(DeviceLock::acquire(key, "a test", Deadline{kShort}));
  } catch (const cni::Error& error) {
    CHECK(error.code() == 11);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE_METHOD(Sandbox,
                 "a lock that is held is error 11 that names the holder, also within one process, and is free when it is released") {
  std::optional lock{DeviceLock::acquire("pci-0000:3b:00.2", "ADD of a pod", Deadline{kShort})};
  CHECK(failure("pci-0000:3b:00.2") == "the lock on pci-0000:3b:00.2 is held by pid " + std::to_string(::getpid()) + ": ADD of a pod");
  CHECK(failure("pci-0000:3b:00.3").empty());
  lock.reset();
  CHECK(failure("pci-0000:3b:00.2").empty());
}

TEST_CASE_METHOD(Sandbox, "a lock is waited for until its deadline, and taken as soon as its holder dies") {
  CHECK(failure("netdev-7").empty());
  const support::Process holder{support::shell("flock --close /run/fabric-nic/netdev-7.lock sleep 60 & sleep 1; kill -9 $!; wait")};
  support::wait_until("the other process has the lock", [] { return !failure("netdev-7").empty(); });
  const auto start = std::chrono::steady_clock::now();
  const auto lock = DeviceLock::acquire("netdev-7", "a test", Deadline{kLong});
  CHECK(std::chrono::steady_clock::now() - start < kLong / 2);
}

TEST_CASE_METHOD(Sandbox, "locks are for root alone, and a link in place of one is not followed") {
  CHECK(failure("netdev-7").empty());
  CHECK(support::sh("stat -c %a /run/fabric-nic /run/fabric-nic/netdev-7.lock") == "700\n600\n");
  std::filesystem::create_symlink("/run/victim", "/run/fabric-nic/netdev-8.lock");
  CHECK_THROWS_AS(DeviceLock::acquire("netdev-8", "a test", Deadline{kShort}), netlink::Error);
  CHECK_FALSE(std::filesystem::exists("/run/victim"));
}

TEST_CASE_METHOD(Sandbox, "a mark is taken once, by the attachment that it was left for") {
  CHECK_FALSE(cni::take_mark("c0ffee", "net1"));
  cni::leave_mark("c0ffee", "net1");
  cni::leave_mark("c0ffee", "net1");
  CHECK_FALSE(cni::take_mark("c0ffee", "net2"));
  CHECK_FALSE(cni::take_mark("c0ffe", "enet1"));
  CHECK(cni::take_mark("c0ffee", "net1"));
  CHECK_FALSE(cni::take_mark("c0ffee", "net1"));
}
