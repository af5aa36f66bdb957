#include "cni/verify_rdma.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include "cni/error.hpp"
#include "cni/rdma_look.hpp"
#include "fabric/rdma_facts.hpp"
#include "netlink/rdma.hpp"

namespace cni {

namespace {

using fabric::Finding;
using fabric::Verdict;

constexpr std::chrono::milliseconds kLookTime{10'000};
constexpr std::chrono::milliseconds kPause{50};

constexpr const char* kActiveMtu = "active_mtu";
constexpr const char* kPortActive = "port_active";
constexpr const char* kGid = "gid";
constexpr const char* kUsable = "usable";

std::string sentence(const PortFindings& port, const Finding& finding) {
  return finding.id == kUsable ? fmt::format("{} cannot be used: {}", port.port, finding.seen)
                               : fmt::format("{}: {} is {} and shall be {}", port.port, finding.id, finding.seen, finding.wanted);
}

/// Where they belong, under their names.
void require_presence(const Record& record, Places& places) {
  const auto side = record.rdma.use == RdmaUse::moved ? Side::pod : Side::host;
  auto* const socket = places.rdma(side);
  for (const auto& wanted : record.rdma.devices) {
    const auto found = socket == nullptr ? std::nullopt : netlink::find_rdma_device(*socket, wanted.index);
    if (!found) {
      throw Error(
          Code::rdma_not_met,
          fmt::format("RDMA device '{}' of {} is not in the {}", wanted.name, record.device.text(), side == Side::pod ? "pod" : "host"),
          "Somebody has taken it away since, or its driver was loaded anew: delete the pod, and a new one gets it.");
    }
    if (found->name != wanted.name) {
      throw Error(Code::rdma_not_met,
                  fmt::format("RDMA device '{}' of {} is called '{}' now", wanted.name, record.device.text(), found->name),
                  "Somebody has renamed it since; programs look for it by name.");
    }
    if (!record.device.parent) {
      continue;
    }
    const auto of_function = netlink::rdma_devices_of(*socket, *record.device.parent, side == Side::host, places.roots);
    if (std::ranges::find(of_function, wanted.index, &netlink::RdmaDevice::index) == of_function.end()) {
      throw Error(Code::rdma_not_met, fmt::format("RDMA device '{}' is not that of {}", wanted.name, record.device.text()));
    }
  }
}

/// Throws Error 103 where they have to be.
bool is_present(const Record& record, Places& places, Log& log) {
  try {
    require_presence(record, places);
    return true;
  } catch (const Error& error) {
    if (record.rdma.is_required) {
      throw;
    }
    log.warning(error.what(), {{"advice", error.details()}});
    return false;
  }
}

/// A device may have ports of other netdevs too, as those of representors: what these are like is nobody's business here.
void keep_own_ports(std::vector<fabric::Device>& devices, const RdmaAttachment& rdma, int netdev_index, netlink::Socket& pod) {
  for (std::size_t at = 0; at < devices.size(); ++at) {
    const auto found = netlink::find_rdma_device(pod, rdma.devices.at(at).index);
    const auto ports = found ? netlink::rdma_ports(pod, *found) : std::vector<netlink::RdmaPort>{};
    const auto is_own = [&](std::uint32_t number) {
      return std::ranges::any_of(ports,
                                 [&](const netlink::RdmaPort& port) { return port.number == number && port.netdev_index == netdev_index; });
    };
    if (std::ranges::any_of(ports, [&](const netlink::RdmaPort& port) { return is_own(port.number); })) {
      std::erase_if(devices[at].ports, [&](const fabric::Port& port) { return !is_own(port.number); });
    }
  }
}

/// The findings of all ports, and what follows from them.
class Verdicts {
 public:
  Verdicts(const std::vector<PortFindings>& ports, const RdmaAttachment& rdma) : ports_(ports), rdma_(rdma) {}

  [[nodiscard]] bool has_failed(const char* id) const {
    return std::ranges::any_of(ports_, [&](const PortFindings& port) {
      return std::ranges::any_of(port.findings, [&](const Finding& f) { return f.id == id && f.verdict == Verdict::fails; });
    });
  }

  /// Whether another look may find it otherwise.
  [[nodiscard]] bool may_change(const RdmaPatience& patience) const {
    const bool awaits_port = has_failed(kPortActive) && !patience.port.has_passed();
    const bool awaits_gid = has_failed(kGid) && !patience.gid.has_passed();
    return awaits_port || awaits_gid;
  }

  void enforce(Log& log) const {
    for (const auto& port : ports_) {
      for (const auto& finding : port.findings) {
        enforce(port, finding, log);
      }
    }
  }

 private:
  void enforce(const PortFindings& port, const Finding& finding, Log& log) const {
    if (finding.verdict == Verdict::unknown) {
      const std::string_view what = finding.id == kUsable ? "whether it can be used" : std::string_view{finding.id};
      log.warning(fmt::format("{}: {} cannot be told: {}", port.port, what, finding.advice));
    }
    if (finding.verdict != Verdict::fails) {
      return;
    }
    if (finding.id == kActiveMtu ? rdma_.is_mtu_required : rdma_.is_required) {
      throw Error(Code::rdma_not_met, sentence(port, finding), finding.advice);
    }
    log.warning(sentence(port, finding), {{"advice", finding.advice}});
  }

  const std::vector<PortFindings>& ports_;
  const RdmaAttachment& rdma_;
};

/// What a program in the pod needs to know of it, for the log.
void publish(const std::vector<fabric::Device>& devices, const RdmaExpectation& expectation, Log& log) {
  for (const auto& device : devices) {
    for (const auto& port : device.ports) {
      std::vector<std::string> gids;
      for (const auto& address : expectation.addresses) {
        const auto index = fabric::gid_index(port, address, expectation.netdev_index);
        gids.push_back(fmt::format("{} = {}", address.text(), index ? std::to_string(*index) : "none"));
      }
      log.info("RDMA device in use", {{"rdmaDevice", device.name},
                                      {"port", std::to_string(port.number)},
                                      {"state", std::string{text(port.state)}},
                                      {"activeMtu", std::to_string(port.active_mtu)},
                                      {"gidIndex", fmt::format("{}", fmt::join(gids, ", "))}});
    }
  }
}

std::vector<std::string> names_of(const std::vector<RdmaState>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices) {
    names.push_back(device.name);
  }
  return names;
}

}  // namespace

RdmaExpectation expectation(const State& wanted, const netlink::Link& link, const netlink::DeviceId& device, const netlink::Roots& roots) {
  RdmaExpectation expected{.addresses = {}, .netdev_index = link.index, .netdev_mtu = link.mtu, .driver = {}};
  for (const auto& address : wanted.addresses) {
    expected.addresses.push_back(address.prefix.address);
  }
  if (device.parent) {
    expected.driver = netlink::driver(*device.parent, roots).value_or("");
  }
  return expected;
}

std::vector<PortFindings> judge(const std::vector<fabric::Device>& devices, const RdmaExpectation& expectation) {
  std::vector<PortFindings> all;
  for (const auto& device : devices) {
    if (!device.problem.empty()) {
      Finding problem{.id = kUsable,
                      .verdict = device.is_unusable ? Verdict::fails : Verdict::unknown,
                      .seen = device.problem,
                      .wanted = {},
                      .advice = device.problem};
      all.push_back({.port = fmt::format("RDMA device '{}'", device.name), .findings = {std::move(problem)}});
    }
    for (const auto& port : device.ports) {
      PortFindings findings{.port = fmt::format("RDMA device '{}', port {}", device.name, port.number), .findings = {}};
      findings.findings.push_back(fabric::port_active(port));
      if (expectation.netdev_mtu) {
        findings.findings.push_back(fabric::active_mtu(port, *expectation.netdev_mtu, expectation.driver));
      }
      findings.findings.push_back(fabric::gid(port, expectation.addresses, expectation.netdev_index));
      all.push_back(std::move(findings));
    }
  }
  return all;
}

void verify_rdma(const Record& record, const RdmaExpectation& expectation, const RdmaPatience& patience, Places& places, Context& context) {
  const auto& rdma = record.rdma;
  if (rdma.use != RdmaUse::moved && rdma.use != RdmaUse::shared) {
    return;
  }
  if (!is_present(record, places, context.log)) {
    return;
  }
  while (true) {
    auto devices = look_at_rdma(places.at(Side::pod).net_ns(), names_of(rdma.devices), context.time_for(kLookTime));
    keep_own_ports(devices, rdma, expectation.netdev_index, *places.rdma(Side::pod));
    const auto ports = judge(devices, expectation);
    const Verdicts verdicts{ports, rdma};
    if (!verdicts.may_change(patience)) {
      verdicts.enforce(context.log);
      publish(devices, expectation, context.log);
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

void verify_recorded_rdma(const State& wanted, const Record& record, Places& places, Context& context) {
  const auto link = record.has_netdev() ? netlink::find_device(places.at(Side::pod), record.device, Side::pod) : std::nullopt;
  const std::chrono::milliseconds none{0};
  verify_rdma(record, expectation(wanted, link.value_or(netlink::Link{}), record.device, places.roots),
              {.port = Deadline{none}, .gid = Deadline{none}}, places, context);
}

}  // namespace cni
