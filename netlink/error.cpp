#include "netlink/error.hpp"

#include <cerrno>
#include <cstring>

namespace netlink {

namespace {

std::string sentence(std::string_view attempt, int error_number, std::string_view kernel_sentence) {
  std::string text{attempt};
  text += ": ";
  text += std::strerror(error_number);  // NOLINT(concurrency-mt-unsafe): the process has one thread
  if (!kernel_sentence.empty()) {
    text += " (";
    text += kernel_sentence;
    text += ')';
  }
  return text;
}

}  // namespace

Error::Error(std::string_view attempt, int error_number, std::string_view kernel_sentence)
    : std::runtime_error(sentence(attempt, error_number, kernel_sentence)),
      error_number_(error_number),
      kernel_sentence_(kernel_sentence) {}

void throw_errno(std::string_view attempt) {
  throw Error(attempt, errno);
}

}  // namespace netlink
