#include "cni/error.hpp"

#include <utility>

#include "cni/json.hpp"

namespace cni {

Error::Error(Code code, const std::string& message, std::string details) : Error(static_cast<int>(code), message, std::move(details)) {}

Error::Error(int code, const std::string& message, std::string details)
    : std::runtime_error(message), code_(code), details_(std::move(details)) {}

std::string print_error(const Error& error, const std::string& cni_version) {
  OrderedJson answer;
  if (!cni_version.empty()) {
    answer["cniVersion"] = cni_version;
  }
  answer["code"] = error.code();
  answer["msg"] = error.what();
  if (!error.details().empty()) {
    answer["details"] = error.details();
  }
  return print_json(answer);
}

}  // namespace cni
