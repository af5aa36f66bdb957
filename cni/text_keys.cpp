#include "cni/text_keys.hpp"

#include <algorithm>
#include <string>

namespace cni {

namespace {

bool is_printable(char c) {
  return static_cast<unsigned char>(c) > ' ' && c != '\x7f';
}

}  // namespace

bool is_file_name(std::string_view text) {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string_view::npos &&
         std::ranges::all_of(text, is_printable);
}

bool is_device_id(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kAlphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:._-";
  return is_file_name(text) && text.size() <= kLongest && text.find_first_not_of(kAlphabet) == std::string_view::npos;
}

bool is_device_name(std::string_view text) {
  constexpr std::size_t kLongestAltname = 127;
  return is_file_name(text) && text.size() <= kLongestAltname;
}

bool is_rdma_name(std::string_view text) {
  constexpr std::size_t kLongest = 63;  // IB_DEVICE_NAME_MAX less the NUL
  return is_file_name(text) && text.size() <= kLongest && text.find('%') == std::string_view::npos;
}

bool is_kernel_path(std::string_view text) {
  constexpr std::string_view kParent = "/sys/devices/";
  return text.starts_with(kParent) && text.size() > kParent.size() && is_absolute_path(text);
}

std::optional<netlink::HardwareAddress> parse_unicast(std::string_view text) {
  auto address = netlink::HardwareAddress::parse(text);
  return address && !address->is_zero() && !address->is_multicast() ? address : std::nullopt;
}

bool is_unicast(std::string_view text) {
  return parse_unicast(text).has_value();
}

bool is_absolute_path(std::string_view text) {
  return text.starts_with('/') && text.find_first_not_of('/') != std::string_view::npos &&
         (std::string{text} + '/').find("/../") == std::string::npos && std::ranges::all_of(text, is_printable);
}

}  // namespace cni
