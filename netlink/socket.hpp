#pragma once

#include <netlink/netlink.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "netlink/message.hpp"
#include "netlink/net_ns.hpp"

namespace netlink {

/// A netlink socket that stays bound to the namespace it was opened in, so that host and pod get one each and nothing hops between them.
/// A socket whose exchange failed half-way is closed, because the answer of a later request could be the lost one of this; the next request
/// opens a new one.
class Socket {
 public:
  Socket(int protocol, NetNs net_ns);

  [[nodiscard]] const NetNs& net_ns() const { return net_ns_; }

  /// Sends and waits for the acknowledgement. Throws Error with the kernel's sentence.
  void request(Request request, std::string_view attempt);

  /// Called with the message type and what follows the netlink header. It must not use a socket, whichever.
  using Receiver = std::function<void(int type, std::span<const std::byte> payload)>;
  /// Sends a GET for one object and passes on the answer; false when the kernel says that there is none, which it does with one of the
  /// errors in `none`. Throws Error.
  [[nodiscard]] bool get(Request request, std::string_view attempt, const Receiver& receive, std::initializer_list<int> none = {ENODEV});

  /// Sends a GET with NLM_F_DUMP and passes on the answers. A dump that was interrupted by a change is repeated, at most eight times;
  /// `restart` is called before each repetition so that the receiver can forget what it has. Throws Error.
  void dump(const std::function<Request()>& make_request, std::string_view attempt, const Receiver& receive,
            const std::function<void()>& restart);

 private:
  /// How an exchange ended: complete, or with the kernel's refusal; a dump may have been interrupted by a change.
  struct Outcome {
    int error_number = 0;
    std::string kernel_sentence;
    bool interrupted = false;
  };

  void open();
  void send(Request& request, std::string_view attempt);
  [[nodiscard]] Outcome receive(std::string_view attempt, const Receiver& receive);
  static void require_success(const Outcome& outcome, std::string_view attempt);
  std::span<const std::byte> receive_datagram(std::string_view attempt);

  struct Free {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
  };
  int protocol_;
  NetNs net_ns_;
  std::unique_ptr<nl_sock, Free> socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace netlink
