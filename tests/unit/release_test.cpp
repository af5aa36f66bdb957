#include "cni/release.hpp"

#include <cerrno>

#include "support/catch.hpp"
#include "unit/mac.hpp"

using cni::instead_of_refused;
using cni::State;
using netlink::HardwareAddress;

namespace {

const auto kZero = mac("00:00:00:00:00:00");
const auto kOwn = mac("02:00:00:00:00:01");
const auto kFresh = mac("02:00:00:00:00:0f");

State vf(const HardwareAddress& administrative) {
  State state;
  state.mac = kOwn;
  state.vf.emplace();
  state.vf->mac = administrative;
  return state;
}

cni::Step set_on_pf(const HardwareAddress& address) {
  cni::SetVf step;
  step.setting.mac = address;
  return step;
}

}  // namespace

TEST_CASE("a PF that takes no MAC of zeros back gives the VF a fresh one, and no other refusal does that") {
  const auto instead = instead_of_refused(set_on_pf(kZero), EINVAL, vf(kZero), kFresh);
  REQUIRE(instead);
  CHECK(instead->vf->mac == kFresh);
  CHECK(instead->mac == kOwn);
  CHECK_FALSE(instead_of_refused(set_on_pf(kOwn), EINVAL, vf(kOwn), kFresh));
  CHECK_FALSE(instead_of_refused(set_on_pf(kZero), EBUSY, vf(kZero), kFresh));
  CHECK_FALSE(instead_of_refused(set_on_pf(kZero), EAGAIN, vf(kZero), kFresh));
  cni::SetVf other;
  other.setting.trust = false;
  CHECK_FALSE(instead_of_refused(other, EINVAL, vf(kZero), kFresh));
}

TEST_CASE("a VF that may have no MAC but its administrative one gets that") {
  const auto instead = instead_of_refused(cni::SetMac{kOwn}, EADDRNOTAVAIL, vf(kFresh), kZero);
  REQUIRE(instead);
  CHECK(instead->mac == kFresh);
  CHECK(instead->vf->mac == kFresh);
  CHECK_FALSE(instead_of_refused(cni::SetMac{kOwn}, EADDRNOTAVAIL, vf(kZero), kFresh));
  CHECK_FALSE(instead_of_refused(cni::SetMac{kOwn}, EADDRNOTAVAIL, vf(kOwn), kFresh));
  State no_vf;
  no_vf.mac = kOwn;
  CHECK_FALSE(instead_of_refused(cni::SetMac{kOwn}, EADDRNOTAVAIL, no_vf, kFresh));
}
