#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cni/log.hpp"
#include "cni/process.hpp"
#include "cni/record.hpp"
#include "cni/result.hpp"
#include "cni/version.hpp"

namespace cni {

/// Delegation to an IPAM plugin: our own environment with the CNI_* variables of the request, its stdin unchanged, found on its CNI_PATH.
/// Every failure is an Error whose sentence names the plugin; the plugin's own code is kept.
class Ipam {
 public:
  /// `inherited_lock`: the device lock, which the plugin's process keeps when we die.
  Ipam(IpamRequest request, std::optional<int> inherited_lock, Log& log)
      : request_(std::move(request)), inherited_lock_(inherited_lock), log_(log) {}

  /// Throws Error when the plugin cannot work: 7 when no directory of CNI_PATH has it, 11 when it is dhcp and the socket of its daemon is
  /// missing.
  void require_ready();
  /// Whether the last failure was one of a plugin that cannot have given an address: not there, not to be started, or not of this version.
  [[nodiscard]] bool gave_nothing() const { return gave_nothing_; }
  /// `version`: of the configuration, in which a result without one of its own is read.
  [[nodiscard]] Result add(Version version, std::chrono::milliseconds time_limit);
  void del(std::chrono::milliseconds time_limit);
  void check(std::chrono::milliseconds time_limit);
  void status(std::chrono::milliseconds time_limit);

 private:
  [[nodiscard]] std::string run(const std::string& command, std::chrono::milliseconds time_limit);
  [[nodiscard]] Ending start(const std::string& program, const std::string& command, std::chrono::milliseconds time_limit);
  void require_exit(const Ending& ending, const std::string& command, std::chrono::milliseconds time_limit) const;
  [[noreturn]] void refuse(const Ending& ending, const std::string& program, const std::string& command);
  [[nodiscard]] std::string find_plugin() const;
  [[nodiscard]] std::string supported_versions(const std::string& program) const;

  IpamRequest request_;
  std::optional<int> inherited_lock_;
  Log& log_;
  bool gave_nothing_ = false;
};

}  // namespace cni
