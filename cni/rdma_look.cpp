#include "cni/rdma_look.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <utility>

#include "cni/process.hpp"
#include "fabric/verbs.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

std::vector<fabric::Device> all_with(const std::vector<std::string>& names, const std::string& problem) {
  std::vector<fabric::Device> devices;
  for (const auto& name : names) {
    devices.push_back({.name = name, .problem = problem, .is_unusable = false, .ports = {}});
  }
  return devices;
}

std::string text(const Ending& ending, std::chrono::milliseconds time_limit) {
  switch (ending.kind) {
    case Ending::Kind::exited:
      return fmt::format("the process that asks libibverbs failed: {:.200}", ending.errors);
    case Ending::Kind::killed:
      return fmt::format("the process that asks libibverbs died of signal {}", ending.status);
    case Ending::Kind::timed_out:
      return fmt::format("libibverbs did not answer within {} ms", time_limit.count());
    case Ending::Kind::printed_too_much:
      break;
  }
  return "the process that asks libibverbs printed too much";
}

}  // namespace

std::vector<fabric::Device> look_at_rdma(const netlink::NetNs& net_ns, const std::vector<std::string>& names,
                                         std::chrono::milliseconds time_limit) {
  std::vector<std::string> arguments{kLookArgument, fmt::format("/proc/self/fd/{}", net_ns.fd())};
  arguments.insert(arguments.end(), names.begin(), names.end());
  try {
    const auto ending = run({.program = "/proc/self/exe",
                             .arguments = std::move(arguments),
                             .environment = {},
                             .input = {},
                             .time_limit = time_limit,
                             .output_limit = std::size_t{4} << 20U,
                             .inherited_fd = net_ns.fd()});
    if (ending.kind != Ending::Kind::exited || ending.status != 0) {
      return all_with(names, text(ending, time_limit));
    }
    auto devices = fabric::parse(ending.output);
    return devices.size() == names.size() ? std::move(devices) : all_with(names, "the process that asks libibverbs spoke of other devices");
  } catch (const std::exception& error) {
    return all_with(names, fmt::format("libibverbs cannot be asked: {}", error.what()));
  }
}

Outcome look_from_inside(const std::vector<std::string>& arguments) {
  // Nobody waits for the answer any more when the caller is dead.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto net_ns = netlink::NetNs::open(arguments.at(0));
  const netlink::NetNs::Visit visit{net_ns};
  return {.text = fabric::print(fabric::look({arguments.begin() + 1, arguments.end()})), .status = EXIT_SUCCESS, .undo = {}};
}

}  // namespace cni
