#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace netlink {

/// A request or a system call that failed: what was attempted, errno, and the kernel's own sentence (extended ACK) where it gave one.
/// what() reads `move 'ens3f0' to the pod as 'net1': File exists (the kernel's sentence)`.
class Error : public std::runtime_error {
 public:
  Error(std::string_view attempt, int error_number, std::string_view kernel_sentence = {});

  [[nodiscard]] int error_number() const { return error_number_; }
  [[nodiscard]] const std::string& kernel_sentence() const { return kernel_sentence_; }

 private:
  int error_number_;
  std::string kernel_sentence_;
};

/// Throws Error with the current errno.
[[noreturn]] void throw_errno(std::string_view attempt);

}  // namespace netlink
