#include "netlink/socket.hpp"

#include <linux/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "netlink/error.hpp"

namespace netlink {

namespace {

// A link with hundreds of VFs answers with up to 64 KiB in one nest, plus the rest of the link.
constexpr std::size_t kBufferSize = std::size_t{256} << 10U;
// One for all sockets, because an answer is done with before the next request goes out; as many as there are sockets would cost each call
// tens of microseconds. Only this process's one thread talks to the kernel.
std::array<std::byte, kBufferSize> buffer;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
constexpr int kDumpAttempts = 8;
// The kernel answers within the send; a longer silence means that the answer is lost.
constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};

void set_option(int fd, int level, int option, const char* name) {
  const int on = 1;
  if (::setsockopt(fd, level, option, &on, sizeof on) != 0) {
    throw_errno(std::string{"set "} + name + " on a netlink socket");
  }
}

struct Acknowledgement {
  int error_number = 0;
  std::string kernel_sentence;
};

/// NLMSG_ERROR: an int, the header of the request (its payload too unless the kernel was asked to cap it), then attributes.
/// NLMSG_DONE: an int, with which a dump that failed in the middle says so.
Acknowledgement parse_end(const nlmsghdr& header, std::span<const std::byte> payload) {
  int error = 0;
  if (payload.size() < sizeof error) {
    return {header.nlmsg_type == NLMSG_DONE ? 0 : EBADMSG, {}};
  }
  std::memcpy(&error, payload.data(), sizeof error);
  Acknowledgement result{error < 0 ? -error : 0, {}};
  if (header.nlmsg_type == NLMSG_ERROR && (header.nlmsg_flags & NLM_F_ACK_TLVS) != 0 && payload.size() >= sizeof(nlmsgerr)) {
    nlmsgerr answer{};
    std::memcpy(&answer, payload.data(), sizeof answer);
    auto offset = sizeof answer;
    if ((header.nlmsg_flags & NLM_F_CAPPED) == 0) {
      offset += NLMSG_ALIGN(answer.msg.nlmsg_len) - sizeof answer.msg;
    }
    result.kernel_sentence = Attributes{payload.subspan(std::min(offset, payload.size()))}.text(NLMSGERR_ATTR_MSG);
  }
  return result;
}

}  // namespace

Socket::Socket(int protocol, NetNs net_ns) : protocol_(protocol), net_ns_(std::move(net_ns)) {
  open();
}

void Socket::open() {
  const NetNs::Visit visit{net_ns_};
  socket_.reset(nl_socket_alloc());
  if (!socket_) {
    throw std::bad_alloc{};
  }
  if (const int error = nl_connect(socket_.get(), protocol_); error < 0) {
    socket_.reset();
    throw Error(std::string{"open a netlink socket ("} + nl_geterror(error) + ')', errno);
  }
  const int fd = nl_socket_get_fd(socket_.get());
  net_ns_.learn_cookie(fd);
  set_option(fd, SOL_NETLINK, NETLINK_EXT_ACK, "NETLINK_EXT_ACK");
  set_option(fd, SOL_NETLINK, NETLINK_CAP_ACK, "NETLINK_CAP_ACK");
  set_option(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, "NETLINK_GET_STRICT_CHK");
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
}

void Socket::request(Request request, std::string_view attempt) {
  nlmsg_hdr(request.get())->nlmsg_flags |= NLM_F_ACK;
  send(request, attempt);
  require_success(receive(attempt, [](int, std::span<const std::byte>) {}), attempt);
}

bool Socket::get(Request request, std::string_view attempt, const Receiver& receiver, std::initializer_list<int> none) {
  send(request, attempt);
  const auto outcome = receive(attempt, receiver);
  // Looking for what may not be there is no failure, and the first exception of a static program costs more than the rest of an ADD.
  if (std::ranges::find(none, outcome.error_number) != none.end()) {
    return false;
  }
  require_success(outcome, attempt);
  return true;
}

void Socket::dump(const std::function<Request()>& make_request, std::string_view attempt, const Receiver& receiver,
                  const std::function<void()>& restart) {
  for (int attempts = 0; attempts < kDumpAttempts; ++attempts) {
    auto request = make_request();
    send(request, attempt);
    const auto outcome = receive(attempt, receiver);
    require_success(outcome, attempt);
    if (!outcome.interrupted) {
      return;
    }
    restart();
  }
  throw Error(attempt, EAGAIN, "the list changed during each of " + std::to_string(kDumpAttempts) + " attempts to read it");
}

void Socket::require_success(const Outcome& outcome, std::string_view attempt) {
  if (outcome.error_number != 0) {
    throw Error(attempt, outcome.error_number, outcome.kernel_sentence);
  }
}

void Socket::send(Request& request, std::string_view attempt) {
  if (!socket_) {
    open();
  }
  auto* header = nlmsg_hdr(request.get());
  header->nlmsg_seq = ++sequence_;
  header->nlmsg_flags |= NLM_F_REQUEST;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto sent = ::sendto(nl_socket_get_fd(socket_.get()), header, header->nlmsg_len, MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0 || static_cast<std::uint32_t>(sent) != header->nlmsg_len) {
    const int error = sent < 0 ? errno : EMSGSIZE;
    socket_.reset();
    throw Error(attempt, error, "the request could not be sent");
  }
}

std::span<const std::byte> Socket::receive_datagram(std::string_view attempt) {
  ssize_t size = 0;
  do {
    size = ::recv(nl_socket_get_fd(socket_.get()), buffer.data(), buffer.size(), MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size < 0 || static_cast<std::size_t>(size) > buffer.size()) {
    const int error = size < 0 ? errno : EMSGSIZE;
    socket_.reset();
    throw Error(attempt, error, "the kernel's answer was lost");
  }
  return std::span{buffer}.first(static_cast<std::size_t>(size));
}

Socket::Outcome Socket::receive(std::string_view attempt, const Receiver& receiver) {
  Outcome outcome;
  while (true) {
    auto rest = receive_datagram(attempt);
    while (rest.size() >= sizeof(nlmsghdr)) {
      nlmsghdr header{};
      std::memcpy(&header, rest.data(), sizeof header);
      if (header.nlmsg_len < sizeof header || header.nlmsg_len > rest.size()) {
        break;
      }
      const auto payload = rest.subspan(sizeof header, header.nlmsg_len - sizeof header);
      rest = rest.subspan(std::min<std::size_t>(rest.size(), NLMSG_ALIGN(header.nlmsg_len)));
      if (header.nlmsg_seq != sequence_) {
        continue;
      }
      outcome.interrupted = outcome.interrupted || (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (header.nlmsg_type == NLMSG_ERROR || header.nlmsg_type == NLMSG_DONE) {
        const auto end = parse_end(header, payload);
        outcome.error_number = end.error_number;
        outcome.kernel_sentence = end.kernel_sentence;
        return outcome;
      }
      receiver(header.nlmsg_type, payload);
      if ((header.nlmsg_flags & NLM_F_MULTI) == 0) {
        return outcome;
      }
    }
  }
}

}  // namespace netlink
