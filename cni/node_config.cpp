#include "cni/node_config.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "cni/config_keys.hpp"
#include "cni/error.hpp"
#include "cni/json.hpp"
#include "cni/text_keys.hpp"
#include "netlink/unique_fd.hpp"

namespace cni {

namespace {

constexpr off_t kLargestFile = off_t{64} << 10U;
constexpr auto kKeys = std::to_array<std::string_view>({"dataDir", "logDir", "allowedSelectors", "allowedDevices", "allowInUse"});
constexpr auto kSelectors = std::to_array<std::string_view>({"deviceID", "device", "hwaddr", "kernelpath", "rdmaDevice"});

void read_directory(const Value& config, std::string_view key, std::string& out) {
  if (const auto value = config.member(key)) {
    out = value->text();
    if (!is_absolute_path(out)) {
      value->refuse("an absolute path without '..'");
    }
  }
}

std::optional<std::vector<std::string>> read_list(const Value& config, std::string_view key, bool (*accepts)(std::string_view),
                                                  std::string_view wanted) {
  const auto list = config.member(key);
  if (!list) {
    return std::nullopt;
  }
  std::vector<std::string> out;
  for (const auto& element : list->elements()) {
    out.push_back(element.text());
    if (!accepts(out.back())) {
      element.refuse(wanted);
    }
  }
  return out;
}

bool is_selector(std::string_view text) {
  return std::ranges::find(kSelectors, text) != kSelectors.end();
}

[[noreturn]] void refuse_file(const std::string& path, std::string_view reason) {
  throw Error(Code::io_failure, fmt::format("the node's configuration {} {}", path, reason),
              "it decides what NetworkAttachmentDefinitions may do, so it must be a regular file of at most 64 KiB that belongs to root "
              "and that only root may write");
}

void check_file(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) {
    refuse_file(path, "is not a regular file");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    refuse_file(path, fmt::format("has mode {:04o}: others than root may write it", status.st_mode & 07777U));
  }
  if (status.st_size > kLargestFile) {
    refuse_file(path, fmt::format("has {} bytes", status.st_size));
  }
  if (status.st_uid != 0) {
    refuse_file(path, fmt::format("belongs to user {}, not to root", status.st_uid));
  }
}

/// The content of the file; nothing when there is none.
std::optional<std::string> read_checked(const std::string& path) {
  const netlink::UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (!fd.is_open() && (errno == ENOENT || errno == ENOTDIR)) {
    return std::nullopt;
  }
  struct stat status{};
  if (!fd.is_open() || ::fstat(fd.get(), &status) != 0) {
    refuse_file(path, errno == ELOOP ? "is a symbolic link" : fmt::format("cannot be opened: {}", std::generic_category().message(errno)));
  }
  check_file(path, status);
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  if (::read(fd.get(), content.data(), content.size()) != status.st_size) {
    refuse_file(path, "could not be read whole");
  }
  return content;
}

}  // namespace

NodeConfig parse_node_config(std::string_view text) {
  const auto json = parse_json(text);
  if (!json.is_object()) {
    throw Error(Code::invalid_configuration, fmt::format("the content is of type {}, an object was wanted", json.type_name()));
  }
  const Value config{json, ""};
  refuse_unknown_members(config, kKeys, Code::invalid_configuration);
  NodeConfig node;
  read_directory(config, "dataDir", node.data_dir);
  read_directory(config, "logDir", node.log_dir);
  node.allowed_selectors =
      read_list(config, "allowedSelectors", is_selector, "'deviceID', 'device', 'hwaddr', 'kernelpath' or 'rdmaDevice'");
  node.allowed_devices = read_list(config, "allowedDevices", is_file_name, "a name or a bus address, with '*' and '?' as in a shell,");
  if (const auto allow_in_use = config.member("allowInUse")) {
    node.allow_in_use = allow_in_use->boolean();
  }
  return node;
}

NodeConfig read_node_config(const std::string& path) {
  const auto content = read_checked(path);
  if (!content) {
    return {};
  }
  try {
    return parse_node_config(*content);
  } catch (const Error& error) {
    throw Error(Code::invalid_configuration, fmt::format("{}: {}", path, error.what()), error.details());
  }
}

}  // namespace cni
