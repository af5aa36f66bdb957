#include "netlink/socket.hpp"

#include <linux/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "netlink/error.hpp"

namespace netlink {

namespace {

// A link with hundreds of VFs answers with up to 64 KiB in one nest, plus the rest of the link.
constexpr std::size_t kBufferSize = std::size_t{256} << 10U;
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
std::optional<Acknowledgement> parse_acknowledgement(std::uint16_t flags, std::span<const std::byte> payload) {
  nlmsgerr error{};
  if (payload.size() < sizeof error) {
    return std::nullopt;
  }
  std::memcpy(&error, payload.data(), sizeof error);
  Acknowledgement result{-error.error, {}};
  if ((flags & NLM_F_ACK_TLVS) != 0) {
    auto offset = sizeof error;
    if ((flags & NLM_F_CAPPED) == 0) {
      offset += NLMSG_ALIGN(error.msg.nlmsg_len) - sizeof error.msg;
    }
    result.kernel_sentence = Attributes{payload.subspan(std::min(offset, payload.size()))}.text(NLMSGERR_ATTR_MSG);
  }
  return result;
}

}  // namespace

Socket::Socket(int protocol, NetNs net_ns)
    : protocol_(protocol), net_ns_(std::move(net_ns)), buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferSize)) {
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
  set_option(fd, SOL_NETLINK, NETLINK_EXT_ACK, "NETLINK_EXT_ACK");
  set_option(fd, SOL_NETLINK, NETLINK_CAP_ACK, "NETLINK_CAP_ACK");
  set_option(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, "NETLINK_GET_STRICT_CHK");
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
}

void Socket::request(Request request, std::string_view attempt) {
  nlmsg_hdr(request.get())->nlmsg_flags |= NLM_F_ACK;
  send(request, attempt);
  (void)receive(attempt, [](int, std::span<const std::byte>) {});
}

void Socket::query(const std::function<Request()>& make_request, std::string_view attempt, const Receiver& receiver,
                   const std::function<void()>& restart) {
  for (int attempts = 0; attempts < kDumpAttempts; ++attempts) {
    auto request = make_request();
    send(request, attempt);
    if (receive(attempt, receiver) == Outcome::complete) {
      return;
    }
    restart();
  }
  throw Error(attempt, EAGAIN, "the list changed during each of " + std::to_string(kDumpAttempts) + " attempts to read it");
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
    size = ::recv(nl_socket_get_fd(socket_.get()), buffer_.get(), kBufferSize, MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size < 0 || static_cast<std::size_t>(size) > kBufferSize) {
    const int error = size < 0 ? errno : EMSGSIZE;
    socket_.reset();
    throw Error(attempt, error, "the kernel's answer was lost");
  }
  return std::span{buffer_.get(), kBufferSize}.first(static_cast<std::size_t>(size));
}

Socket::Outcome Socket::receive(std::string_view attempt, const Receiver& receiver) {
  auto outcome = Outcome::complete;
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
      if ((header.nlmsg_flags & NLM_F_DUMP_INTR) != 0) {
        outcome = Outcome::interrupted;
      }
      if (header.nlmsg_type == NLMSG_ERROR) {
        const auto acknowledgement = parse_acknowledgement(header.nlmsg_flags, payload);
        if (!acknowledgement || acknowledgement->error_number != 0) {
          throw Error(attempt, acknowledgement ? acknowledgement->error_number : EBADMSG,
                      acknowledgement ? acknowledgement->kernel_sentence : "");
        }
        return outcome;
      }
      if (header.nlmsg_type == NLMSG_DONE) {
        // A dump that failed in the middle says so here.
        if (int error = 0; payload.size() >= sizeof error && (std::memcpy(&error, payload.data(), sizeof error), error < 0)) {
          throw Error(attempt, -error);
        }
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
