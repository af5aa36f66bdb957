#include "cni/plan.hpp"

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_link.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include "cni/vf_settings.hpp"
#include "netlink/driver.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

constexpr const char* kStableSecret = "net/ipv6/conf/IFNAME/stable_secret";
constexpr const char* kAddressMode = "net/ipv6/conf/IFNAME/addr_gen_mode";

std::vector<std::string> missing_from(const std::vector<std::string>& all, const std::vector<std::string>& from) {
  std::vector<std::string> missing;
  std::ranges::set_difference(all, from, std::back_inserter(missing));
  return missing;
}

/// One planning: the two states and the steps so far.
class Planner {
 public:
  Planner(const State& now, const State& wanted) : now_(now), wanted_(wanted), moves_(now.side != wanted.side) {}

  std::vector<Step> plan() {
    plan_vf();
    if (has_to_bind_anew()) {
      add(BindAnew{wanted_.driver_to_bind});
      return std::move(steps_);
    }
    // While they are where they were seen: an index is another one's elsewhere.
    if (moves_ && wanted_.side == Side::host) {
      for (const auto& upper : now_.uppers) {
        add(RemoveUpper{upper});
      }
    }
    plan_rdma_names();
    plan_rdma_moves(true);
    if (std::ranges::any_of(steps_, makes_netdev_anew)) {
      return std::move(steps_);
    }
    for (auto& altname : missing_from(now_.altnames, wanted_.altnames)) {
      add(RemoveAltname{std::move(altname)});
    }
    plan_place();
    plan_rdma_moves(false);
    if (moves_ && wanted_.side == Side::host) {
      return std::move(steps_);
    }
    plan_xdp();
    plan_link();
    for (auto& altname : missing_from(wanted_.altnames, now_.altnames)) {
      add(AddAltname{std::move(altname)});
    }
    plan_sysctls();
    plan_addresses();
    if (up_ != wanted_.up) {
      add(SetFlag{IFF_UP, wanted_.up});
    }
    plan_routes();
    return std::move(steps_);
  }

 private:
  template <typename S>
  void add(S step) {
    steps_.emplace_back(std::move(step));
  }

  [[nodiscard]] bool mac_differs() const { return !wanted_.mac.is_empty() && !wanted_.mac.is_zero() && wanted_.mac != now_.mac; }
  [[nodiscard]] bool mtu_differs() const { return wanted_.mtu && now_.mtu && *wanted_.mtu != *now_.mtu; }

  /// In a pod, a VF keeps the settings of its pod: no tenant is to be in another one's VLAN, not for a moment.
  void plan_vf() {
    if (now_.side == Side::host && now_.vf && wanted_.vf) {
      for (auto& setting : differing_settings(*now_.vf, *wanted_.vf)) {
        add(SetVf{std::move(setting)});
      }
    }
  }

  /// Where they are: on the way out so that a name which is taken is found before anything moves, on the way home so that the device comes
  /// under its own.
  void plan_rdma_names() {
    for (const auto& wanted : wanted_.rdma) {
      const auto* const now = find_rdma(now_.rdma, wanted.index);
      if (now != nullptr && now->name != wanted.name) {
        add(RenameRdma{.index = wanted.index, .name = wanted.name});
      }
    }
  }

  /// Who watches sees the RDMA device come home before its netdev, and never a netdev that is there without the RDMA device it came for.
  void plan_rdma_moves(bool is_before_netdev) {
    for (const auto& wanted : wanted_.rdma) {
      const auto* const now = find_rdma(now_.rdma, wanted.index);
      const bool comes_first = wanted.side == Side::host || wanted.is_infiniband;
      if (now != nullptr && now->side != wanted.side && comes_first == is_before_netdev) {
        add(MoveRdma{.index = wanted.index, .name = wanted.name, .to = wanted.side, .makes_netdev_anew = wanted.is_infiniband});
      }
    }
  }

  /// A GUID that is set now, or was set before and is not that of the netdev yet.
  [[nodiscard]] bool has_to_bind_anew() const {
    if (wanted_.driver_to_bind.empty() || now_.is_bound_anew || now_.side == Side::pod || !now_.vf || !wanted_.vf) {
      return false;
    }
    const auto effective = guid_of(now_.mac);
    const auto shall = wanted_.vf->port_guid.value_or(kZeroGuid);
    return std::ranges::any_of(steps_, sets_guid) || (effective && shall != kZeroGuid && shall != *effective);
  }

  void plan_place() {
    if (moves_) {
      Move move{.to = wanted_.side, .name = wanted_.name, .index = std::nullopt, .mac = {}, .mtu = {}};
      if (wanted_.index != 0) {
        move.index = wanted_.index;
      }
      // On the way home MAC and MTU have requests of their own: a driver that refuses one must not cost the device its name.
      if (wanted_.side == Side::pod) {
        move.mac = mac_differs() ? std::optional{wanted_.mac} : std::nullopt;
        move.mtu = mtu_differs() ? wanted_.mtu : std::nullopt;
      }
      add(std::move(move));
      up_ = false;
      return;
    }
    plan_reset();
    const bool renamed = now_.name != wanted_.name;
    // Linux before 6.3 renames nothing that is up, and many drivers change no MAC then. What shall be down goes down before it gets the
    // IPv6 addresses that going down would take away.
    if (up_ && (renamed || mac_differs() || !wanted_.up)) {
      add(SetFlag{IFF_UP, false});
      up_ = false;
    }
    if (renamed) {
      add(Rename{wanted_.name});
    }
  }

  /// Some VFs (igbvf) have no MAC but the one that their PF has set, and take that only when they are reset: with going down.
  void plan_reset() {
    if (now_.is_mac_refused && mac_differs()) {
      if (!up_) {
        add(SetFlag{IFF_UP, true});
      }
      add(SetFlag{IFF_UP, false});
      up_ = false;
    }
  }

  /// Before the MTU, which a program in driver mode limits.
  void plan_xdp() {
    for (const auto& program : now_.xdp) {
      if (std::ranges::find(wanted_.xdp, program) == wanted_.xdp.end()) {
        add(DetachXdp{program});
      }
    }
  }

  void plan_link() {
    const bool done_by_move = moves_ && wanted_.side == Side::pod;
    if (mac_differs() && !done_by_move) {
      add(SetMac{wanted_.mac});
    }
    if (mtu_differs() && !done_by_move) {
      add(SetMtu{*wanted_.mtu});
    }
    if (now_.alias != wanted_.alias) {
      add(SetAlias{wanted_.alias});
    }
    if (wanted_.tx_queue_length && now_.tx_queue_length && *wanted_.tx_queue_length != *now_.tx_queue_length) {
      add(SetTxQueueLength{*wanted_.tx_queue_length});
    }
    if (now_.promisc != wanted_.promisc) {
      add(SetFlag{IFF_PROMISC, wanted_.promisc});
    }
    if (now_.allmulti != wanted_.allmulti) {
      add(SetFlag{IFF_ALLMULTI, wanted_.allmulti});
    }
    if (wanted_.arp && now_.arp && *wanted_.arp != *now_.arp) {
      add(SetFlag{IFF_NOARP, !*wanted_.arp});
    }
    if (wanted_.multicast && now_.multicast && *wanted_.multicast != *now_.multicast) {
      add(SetFlag{IFF_MULTICAST, *wanted_.multicast});
    }
  }

  /// A move resets them all, so that nothing is known of their values behind it.
  void plan_sysctls() {
    auto changes = wanted_.sysctls.differing_from(moves_ ? netlink::Sysctls{} : now_.sysctls);
    const auto secret = std::ranges::find(changes, kStableSecret, &netlink::Sysctl::path);
    if (secret != changes.end()) {
      // The mode may need the secret, and writing the secret sets the mode.
      std::rotate(changes.begin(), secret, secret + 1);
      const auto mode = wanted_.sysctls.find(kAddressMode);
      if (mode && std::ranges::find(changes, kAddressMode, &netlink::Sysctl::path) == changes.end()) {
        changes.push_back({kAddressMode, *mode});
      }
    }
    for (auto& [path, value] : changes) {
      add(WriteSysctl{std::move(path), std::move(value)});
    }
  }

  /// Going down takes IPv6 addresses away, as going down takes routes.
  void plan_addresses() {
    for (const auto& address : wanted_.addresses) {
      const bool lost = moves_ || (up_ != now_.up && address.prefix.address.family() == netlink::Family::v6);
      const bool present = std::ranges::find(now_.addresses, address.prefix, &netlink::InterfaceAddress::prefix) != now_.addresses.end();
      if (lost || !present) {
        add(AddAddress{address});
      }
    }
  }

  /// Going down takes the IPv4 routes away, also those that `now` still has.
  void plan_routes() {
    for (const auto& route : wanted_.routes) {
      const bool kept = !moves_ && up_ == now_.up && std::ranges::find(now_.routes, route) != now_.routes.end();
      if (!kept && wanted_.up) {
        add(AddRoute{route});
      }
    }
  }

  const State& now_;
  const State& wanted_;
  bool moves_;
  bool up_ = now_.up;
  std::vector<Step> steps_;
};

std::string_view flag_name(std::uint32_t flag) {
  return flag == IFF_UP         ? "up"
         : flag == IFF_PROMISC  ? "promisc"
         : flag == IFF_ALLMULTI ? "allmulti"
         : flag == IFF_NOARP    ? "noarp"
                                : "multicast";
}

std::string_view side_name(Side side) {
  return side == Side::pod ? "the pod" : "the host";
}

void move(const Move& step, Subject& subject, Places& places, const std::string& attempt) {
  const netlink::LinkChange change{.target = &places.at(step.to).net_ns(),
                                   .index = step.index,
                                   .name = step.name,
                                   .address = step.mac,
                                   .mtu = step.mtu,
                                   .alias = {},
                                   .flags = 0,
                                   .flag_mask = 0,
                                   .tx_queue_length = {}};
  netlink::change_link(places.at(subject.side), subject.index, change, attempt);
  // The index was asked for, and nobody else can have it; the MAC, which the pod may be changing, is one that the device has now.
  const bool has_index = !subject.device.parent && step.index;
  auto& target = places.at(step.to);
  const auto link = has_index ? netlink::find_link(target, *step.index) : netlink::find_device(target, subject.device, step.to);
  if (!link) {
    throw netlink::Error(attempt, ENODEV, "the kernel reported success, and the device is not there");
  }
  subject.device.learn_address(link->address);
  subject.side = step.to;
  subject.index = link->index;
  subject.name = link->name;
}

/// The socket of the side that has the device.
netlink::Socket& rdma_socket(Side side, Places& places, const std::string& attempt) {
  auto* const socket = places.rdma(side);
  if (socket == nullptr) {
    throw netlink::Error(attempt, EPROTONOSUPPORT, "the kernel speaks of no RDMA devices there");
  }
  return *socket;
}

void rename_rdma(const RenameRdma& step, Places& places, const std::string& attempt) {
  for (const auto side : {Side::host, Side::pod}) {
    auto* const socket = places.rdma(side);
    if (socket != nullptr && netlink::find_rdma_device(*socket, step.index)) {
      netlink::rename_rdma_device(*socket, step.index, step.name, attempt);
      return;
    }
  }
  throw netlink::Error(attempt, ENODEV, "the RDMA device is neither in the host nor in the pod");
}

void move_rdma(const MoveRdma& step, Places& places, const std::string& attempt) {
  const auto from = step.to == Side::pod ? Side::host : Side::pod;
  netlink::move_rdma_device(rdma_socket(from, places, attempt), step.index, places.at(step.to).net_ns(), attempt);
}

void set_vf(const SetVf& step, const Subject& subject, Places& places, const std::string& attempt) {
  const auto administration = subject.device.parent ? find_administration(*subject.device.parent, places) : std::nullopt;
  if (!administration) {
    throw netlink::Error(attempt, ENODEV, "the network interface of its PF is not in the host");
  }
  netlink::change_vf(places.host, administration->pf.index, administration->id.number, step.setting, attempt);
}

void bind_anew(const BindAnew& step, const Subject& subject, const Places& places) {
  netlink::unbind_driver(*subject.device.parent, places.roots);
  netlink::bind_driver(*subject.device.parent, step.driver, places.roots);
}

netlink::LinkChange link_change(const Step& step) {
  netlink::LinkChange change;
  std::visit(Overloaded{[&](const Rename& rename) { change.name = rename.name; }, [&](const SetMac& set) { change.address = set.mac; },
                        [&](const SetMtu& set) { change.mtu = set.mtu; }, [&](const SetAlias& set) { change.alias = set.alias; },
                        [&](const SetTxQueueLength& set) { change.tx_queue_length = set.length; },
                        [&](const SetFlag& set) {
                          change.flag_mask = set.flag;
                          change.flags = set.on ? set.flag : 0;
                        },
                        [](const auto&) {}},
             step);
  return change;
}

}  // namespace

std::vector<Step> plan(const State& now, const State& wanted) {
  return Planner{now, wanted}.plan();
}

bool sets_mac(const Step& step) {
  const auto* move = std::get_if<Move>(&step);
  return std::holds_alternative<SetMac>(step) || (move != nullptr && move->mac);
}

bool makes_netdev_anew(const Step& step) {
  const auto* move_rdma = std::get_if<MoveRdma>(&step);
  return std::holds_alternative<BindAnew>(step) || (move_rdma != nullptr && move_rdma->makes_netdev_anew);
}

bool is_about_rdma(const Step& step) {
  return std::holds_alternative<RenameRdma>(step) || std::holds_alternative<MoveRdma>(step);
}

bool sets_guid(const Step& step) {
  const auto* set_vf = std::get_if<SetVf>(&step);
  return set_vf != nullptr && (set_vf->setting.node_guid || set_vf->setting.port_guid);
}

std::string describe(const Step& step) {
  return std::visit(
      Overloaded{[](const SetVf& s) {
                   const auto [key, value] = text_of_setting(s.setting);
                   return fmt::format("set the VF's {} to {}", key, value);
                 },
                 [](const RenameRdma& s) { return fmt::format("rename its RDMA device to '{}'", s.name); },
                 [](const MoveRdma& s) { return fmt::format("move its RDMA device '{}' to {}", s.name, side_name(s.to)); },
                 [](const BindAnew& s) { return fmt::format("bind its driver '{}' anew", s.driver); },
                 [](const RemoveUpper& s) { return fmt::format("remove '{}', which the pod has put onto it", s.upper.name); },
                 [](const RemoveAltname& s) { return fmt::format("remove altname '{}'", s.altname); },
                 [](const AddAltname& s) { return fmt::format("add altname '{}'", s.altname); },
                 [](const Move& s) {
                   return fmt::format("move to {} as '{}'{}{}", side_name(s.to), s.name, s.mac ? " with MAC " + s.mac->text() : "",
                                      s.mtu ? fmt::format(" with MTU {}", *s.mtu) : "");
                 },
                 [](const Rename& s) { return fmt::format("rename to '{}'", s.name); },
                 [](const SetMac& s) { return fmt::format("set the MAC to {}", s.mac.text()); },
                 [](const SetMtu& s) { return fmt::format("set the MTU to {}", s.mtu); },
                 [](const SetAlias& s) { return s.alias.empty() ? "remove the alias" : fmt::format("set the alias to '{}'", s.alias); },
                 [](const SetTxQueueLength& s) { return fmt::format("set the transmit queue length to {}", s.length); },
                 [](const SetFlag& s) { return fmt::format("set {} {}", flag_name(s.flag), s.on ? "on" : "off"); },
                 [](const DetachXdp& s) { return fmt::format("detach XDP program {}", s.program.id); },
                 [](const WriteSysctl& s) { return fmt::format("set sysctl {} to '{}'", s.path, s.value); },
                 [](const AddAddress& s) { return fmt::format("add address {}", s.address.prefix.text()); },
                 [](const AddRoute& s) {
                   return fmt::format("add route to {}{}", s.route.destination.text(),
                                      s.route.gateway ? " via " + s.route.gateway->text() : "");
                 }},
      step);
}

void apply(const Step& step, Subject& subject, Places& places) {
  const auto attempt = fmt::format("{} '{}' ({}): {}", subject.side == Side::pod ? "pod interface" : "host interface", subject.name,
                                   subject.device.text(), describe(step));
  auto& socket = places.at(subject.side);
  std::visit(
      Overloaded{[&](const SetVf& s) { set_vf(s, subject, places, attempt); }, [&](const Move& s) { move(s, subject, places, attempt); },
                 [&](const RenameRdma& s) { rename_rdma(s, places, attempt); }, [&](const MoveRdma& s) { move_rdma(s, places, attempt); },
                 [&](const BindAnew& s) { bind_anew(s, subject, places); },
                 [&](const RemoveUpper& s) { netlink::delete_link(socket, s.upper.index, attempt); },
                 [&](const RemoveAltname& s) { netlink::remove_altname(socket, subject.index, s.altname, attempt); },
                 [&](const AddAltname& s) { netlink::add_altname(socket, subject.index, s.altname, attempt); },
                 [&](const DetachXdp& s) { netlink::detach_xdp(socket, subject.index, s.program.mode, attempt); },
                 [&](const WriteSysctl& s) { netlink::write_sysctl(s.path, subject.name, s.value, socket.net_ns(), places.roots); },
                 [&](const AddAddress& s) { netlink::add_address(socket, subject.index, s.address, attempt); },
                 [&](const AddRoute& s) { netlink::add_route(socket, subject.index, s.route, attempt); },
                 [&](const auto&) { netlink::change_link(socket, subject.index, link_change(step), attempt); }},
      step);
  if (const auto* rename = std::get_if<Rename>(&step)) {
    subject.name = rename->name;
  }
}

}  // namespace cni
