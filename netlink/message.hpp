#pragma once

#include <netlink/msg.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netlink {

/// A netlink request under construction: header first, then attributes, nests closed by the end of their scope.
///
///   Request request{RTM_NEWLINK, 0};
///   request.append(ifinfomsg{...});
///   request.put(IFLA_MTU, std::uint32_t{9000});
///   { const auto nest = request.nest(IFLA_XDP); request.put(IFLA_XDP_FD, std::int32_t{-1}); }
class Request {
 public:
  Request(int type, int flags);
  /// Takes over a message that libnl-route built.
  explicit Request(nl_msg* message) : message_(message) {}
  /// A message that was received, whole again, for libnl-route's parsers.
  [[nodiscard]] static Request received(int type, std::span<const std::byte> payload);

  template <typename Header>
  void append(const Header& header) {
    append_payload(std::as_bytes(std::span{&header, 1}));
  }
  void put(int attribute, std::span<const std::byte> bytes);
  void put(int attribute, std::uint32_t value) { put(attribute, std::as_bytes(std::span{&value, 1})); }
  void put(int attribute, std::int32_t value) { put(attribute, std::as_bytes(std::span{&value, 1})); }
  /// With the NUL at its end that the kernel's strings have.
  void put(int attribute, const std::string& text);

  class Nest {
   public:
    Nest(nl_msg* message, int attribute);
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;
    Nest(Nest&&) = delete;
    Nest& operator=(Nest&&) = delete;
    ~Nest();

   private:
    nl_msg* message_;
    nlattr* start_;
  };
  [[nodiscard]] Nest nest(int attribute) { return Nest{message_.get(), attribute}; }

  [[nodiscard]] nl_msg* get() { return message_.get(); }

 private:
  void append_payload(std::span<const std::byte> bytes);

  struct Free {
    void operator()(nl_msg* message) const { nlmsg_free(message); }
  };
  std::unique_ptr<nl_msg, Free> message_;
};

struct Attribute {
  int type = 0;
  std::span<const std::byte> bytes;
};

/// The attributes of a message or a nest, without the nested and byte-order flags in their types. What follows a malformed one is left out.
/// The spans lead into `bytes`.
class Attributes {
 public:
  explicit Attributes(std::span<const std::byte> bytes);

  [[nodiscard]] const std::vector<Attribute>& all() const { return attributes_; }
  [[nodiscard]] std::optional<std::span<const std::byte>> find(int type) const;
  /// Nothing when the attribute is absent or shorter than a T.
  template <typename T>
  [[nodiscard]] std::optional<T> value(int type) const {
    const auto bytes = find(type);
    if (!bytes || bytes->size() < sizeof(T)) {
      return std::nullopt;
    }
    T value{};
    std::memcpy(&value, bytes->data(), sizeof(T));
    return value;
  }
  /// Up to the first NUL; empty when the attribute is absent.
  [[nodiscard]] std::string text(int type) const;
  [[nodiscard]] Attributes nested(int type) const;

 private:
  std::vector<Attribute> attributes_;
};

/// The text in an attribute, up to the first NUL.
[[nodiscard]] std::string attribute_text(std::span<const std::byte> bytes);

}  // namespace netlink
