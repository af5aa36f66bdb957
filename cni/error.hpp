#pragma once

#include <stdexcept>
#include <string>

namespace cni {

/// The codes this plugin answers with: 1-51 are the specification's, 100 and up are ours (docs/errors.md).
enum class Code : int {
  incompatible_version = 1,
  unsupported_field = 2,
  unknown_container = 3,
  invalid_environment = 4,
  io_failure = 5,
  decode_failure = 6,
  invalid_configuration = 7,
  invalid_net_ns = 8,
  try_again_later = 11,
  plugin_not_available = 50,
  device_cannot_be_taken = 100,
  setting_refused = 101,
  verification_failed = 102,
  rdma_not_met = 103,
  internal = 999,
};

/// What a verb failed with. `what()` is one sentence that says what was wanted and what was seen (the `msg` of the answer);
/// `details` holds the kernel's sentence and what to do about it. The code is an int because an IPAM plugin's own passes through.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message, std::string details = {});
  Error(int code, const std::string& message, std::string details = {});

  [[nodiscard]] int code() const { return code_; }
  [[nodiscard]] const std::string& details() const { return details_; }

 private:
  int code_;
  std::string details_;
};

/// The error object of the specification, as JSON text with a newline at its end; an empty version and empty details are left out.
[[nodiscard]] std::string print_error(const Error& error, const std::string& cni_version);

}  // namespace cni
