#include "netlink/message.hpp"

#include <netlink/attr.h>

#include <algorithm>
#include <new>

namespace netlink {

namespace {

// An alias of 255 bytes is the longest thing in a request. libnl would give each a page and fill it with zeros.
constexpr std::size_t kRequestSize = 1024;
// Of an attribute, with its header: a 32-bit number's.
constexpr std::size_t kUsualSize = 8;

void require(bool done) {
  if (!done) {
    throw std::bad_alloc{};
  }
}

}  // namespace

Request::Request(int type, int flags) : message_(nlmsg_alloc_size(kRequestSize)) {
  require(message_ != nullptr);
  require(nlmsg_put(message_.get(), NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, flags) != nullptr);
}

Request Request::received(int type, std::span<const std::byte> payload) {
  Request message{nlmsg_alloc_size(static_cast<std::size_t>(nlmsg_size(static_cast<int>(payload.size()))) + NLMSG_ALIGNTO)};
  require(message.message_ != nullptr);
  require(nlmsg_put(message.get(), NL_AUTO_PORT, NL_AUTO_SEQ, type, 0, 0) != nullptr);
  message.append_payload(payload);
  return message;
}

void Request::append_payload(std::span<const std::byte> bytes) {
  // libnl copies; its parameter has no const.
  require(nlmsg_append(message_.get(), const_cast<std::byte*>(bytes.data()), bytes.size(), NLMSG_ALIGNTO) == 0);
}

void Request::put(int attribute, std::span<const std::byte> bytes) {
  require(nla_put(message_.get(), attribute, static_cast<int>(bytes.size()), bytes.data()) == 0);
}

void Request::put(int attribute, const std::string& text) {
  require(nla_put(message_.get(), attribute, static_cast<int>(text.size() + 1), text.c_str()) == 0);
}

Request::Nest::Nest(nl_msg* message, int attribute) : message_(message), start_(nla_nest_start(message, attribute | NLA_F_NESTED)) {
  require(start_ != nullptr);
}

Request::Nest::~Nest() {
  nla_nest_end(message_, start_);
}

Attributes::Attributes(std::span<const std::byte> bytes) {
  attributes_.reserve(bytes.size() / kUsualSize);
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) {
      return;
    }
    attributes_.push_back({header.nla_type & NLA_TYPE_MASK, bytes.subspan(sizeof header, header.nla_len - sizeof header)});
    bytes = bytes.subspan(std::min<std::size_t>(bytes.size(), NLA_ALIGN(header.nla_len)));
  }
}

std::optional<std::span<const std::byte>> Attributes::find(int type) const {
  const auto found = std::ranges::find(attributes_, type, &Attribute::type);
  if (found == attributes_.end()) {
    return std::nullopt;
  }
  return found->bytes;
}

std::string Attributes::text(int type) const {
  return attribute_text(find(type).value_or(std::span<const std::byte>{}));
}

Attributes Attributes::nested(int type) const {
  return Attributes{find(type).value_or(std::span<const std::byte>{})};
}

std::string attribute_text(std::span<const std::byte> bytes) {
  const auto end = std::ranges::find(bytes, std::byte{0});
  std::string text;
  std::ranges::transform(bytes.begin(), end, std::back_inserter(text), [](std::byte byte) { return static_cast<char>(byte); });
  return text;
}

}  // namespace netlink
