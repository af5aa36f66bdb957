#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cni/log.hpp"
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

  /// Throws Error 7 when no directory of CNI_PATH has the plugin.
  void require_installed() const { (void)find_plugin(); }
  /// `version`: of the configuration, in which a result without one of its own is read.
  [[nodiscard]] Result add(Version version, std::chrono::milliseconds time_limit);
  void del(std::chrono::milliseconds time_limit);
  void check(std::chrono::milliseconds time_limit);
  void status(std::chrono::milliseconds time_limit);

 private:
  [[nodiscard]] std::string run(const std::string& command, std::chrono::milliseconds time_limit);
  [[nodiscard]] std::string find_plugin() const;
  [[nodiscard]] std::string supported_versions(const std::string& program) const;

  IpamRequest request_;
  std::optional<int> inherited_lock_;
  Log& log_;
};

}  // namespace cni
