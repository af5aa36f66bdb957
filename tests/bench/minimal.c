/* The least that an attachment costs: one request over one netlink socket moves a NIC, names it, sets its MTU and sets it up. It reads
 * nothing, verifies nothing and remembers nothing. minimal FROM-NETNS NAME TO-NETNS NEW-NAME MTU */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

struct request {
  struct nlmsghdr header;
  struct ifinfomsg link;
  char attributes[256];
};

static int check(int result, const char* what) {
  if (result < 0) {
    perror(what);
    exit(1);
  }
  return result;
}

static void put(struct request* request, unsigned short type, const void* value, unsigned short size) {
  struct rtattr* attribute = (struct rtattr*)((char*)request + NLMSG_ALIGN(request->header.nlmsg_len));
  attribute->rta_type = type;
  attribute->rta_len = (unsigned short)RTA_LENGTH(size);
  memcpy(RTA_DATA(attribute), value, size);
  request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + RTA_SPACE(size);
}

static int index_of(int fd, const char* name) {
  struct ifreq interface = {0};
  strncpy(interface.ifr_name, name, sizeof interface.ifr_name - 1);
  check(ioctl(fd, SIOCGIFINDEX, &interface), name);
  return interface.ifr_ifindex;
}

int main(int argc, char** argv) {
  if (argc != 6 || strlen(argv[4]) >= IFNAMSIZ) {
    fprintf(stderr, "usage: minimal FROM-NETNS NAME TO-NETNS NEW-NAME MTU\n");
    return 2;
  }
  const int to = check(open(argv[3], O_RDONLY | O_CLOEXEC), argv[3]);
  const int from = check(open(argv[1], O_RDONLY | O_CLOEXEC), argv[1]);
  check(setns(from, CLONE_NEWNET), argv[1]);
  const int fd = check(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), "socket");
  const int mtu = atoi(argv[5]);

  struct request request = {
      .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg)), .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
      .link = {.ifi_index = index_of(fd, argv[2]), .ifi_flags = IFF_UP, .ifi_change = IFF_UP}};
  put(&request, IFLA_NET_NS_FD, &to, sizeof to);
  put(&request, IFLA_IFNAME, argv[4], (unsigned short)(strlen(argv[4]) + 1));
  put(&request, IFLA_MTU, &mtu, sizeof mtu);
  check((int)send(fd, &request, request.header.nlmsg_len, 0), "send");

  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
    char rest[512];
  } answer;
  check((int)recv(fd, &answer, sizeof answer, 0), "recv");
  if (answer.header.nlmsg_type != NLMSG_ERROR || answer.error.error != 0) {
    fprintf(stderr, "the kernel refused: %s\n", strerror(-answer.error.error));
    return 1;
  }
  return 0;
}
