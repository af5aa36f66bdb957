#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "cni/error.hpp"
#include "cni/ipam.hpp"
#include "cni/state.hpp"
#include "cni/verbs.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kIpamTime{10'000};

/// The directory, or where it does not exist yet the nearest that does.
void require_writable(const std::string& data_dir) {
  std::filesystem::path path{data_dir};
  while (::access(path.c_str(), F_OK) != 0 && path.has_parent_path() && path != path.parent_path()) {
    path = path.parent_path();
  }
  const int error = ::access(path.c_str(), W_OK) != 0 ? errno : std::filesystem::is_directory(path) ? 0 : ENOTDIR;
  if (error != 0) {
    throw Error(Code::plugin_not_available, fmt::format("the data directory '{}' cannot be written", data_dir),
                fmt::format("{}: {}", path.string(), std::generic_category().message(error)));
  }
}

void require_rdma_mode(RdmaRequest request, const netlink::Roots& roots) {
  if (request != RdmaRequest::exclusive && request != RdmaRequest::shared) {
    return;
  }
  Places places{netlink::NetNs::current(), std::nullopt, roots};
  const auto mode = places.rdma_mode();
  const auto wanted = request == RdmaRequest::exclusive ? netlink::RdmaMode::exclusive : netlink::RdmaMode::shared;
  const auto word = [](netlink::RdmaMode one) { return one == netlink::RdmaMode::exclusive ? "exclusive" : "shared"; };
  if (mode != wanted) {
    throw Error(Code::plugin_not_available,
                fmt::format("'rdma' is \"{}\" and this node's RDMA devices are {}", word(wanted),
                            mode ? word(*mode) : "not there: no RDMA driver is loaded"),
                "The mode is set at boot, by ib_core's option netns_mode (0 is exclusive, 1 shared).");
  }
}

}  // namespace

Outcome status(Context& context) {
  require_writable(context.store.data_dir());
  require_rdma_mode(context.network.rdma, context.roots);
  if (!context.network.ipam_type.empty()) {
    try {
      Ipam{context.ipam_request(), std::nullopt, context.log}.status(context.deadline.at_most(kIpamTime));
    } catch (const Error& error) {
      // 50 and 51 are STATUS' own; any other failure means that an ADD would fail too.
      const bool is_its_own = error.code() == 50 || error.code() == 51;
      throw Error(is_its_own ? error.code() : static_cast<int>(Code::plugin_not_available), error.what(), error.details());
    }
  }
  return {};
}

}  // namespace cni
