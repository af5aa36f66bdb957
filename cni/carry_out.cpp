#include "cni/carry_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "cni/error.hpp"
#include "cni/infiniband.hpp"
#include "cni/rdma.hpp"
#include "cni/vf_settings.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

/// The first part of a failed move that was not done: the kernel stops there, and does not undo what it did before.
std::string undone_part(const Move& step, const Subject& subject, Places& places) {
  const auto link = netlink::find_device(places.at(Side::pod), subject.device, Side::pod);
  if (!link) {
    return fmt::format("leave the host for the pod as '{}'", step.name);
  }
  if (step.mac && link->address != *step.mac) {
    return fmt::format("take the MAC {}", step.mac->text());
  }
  if (step.mtu && link->mtu != step.mtu) {
    return fmt::format("take the MTU {}", *step.mtu);
  }
  return fmt::format("take the name '{}'", step.name);
}

std::string driver_text(const netlink::DeviceId& device, const netlink::Roots& roots) {
  const auto driver = device.parent ? netlink::driver(*device.parent, roots) : std::nullopt;
  return driver ? fmt::format("driver '{}'", *driver) : fmt::format("a {}", device.kind.empty() ? "device without a driver" : device.kind);
}

/// Who refused, and what: the host knows the device by another name than the pod, and what is set on the PF is the PF's to refuse.
std::string refused_part(const Step& step, const Subject& subject, const Record& record, Places& places) {
  const auto* set_vf = std::get_if<SetVf>(&step);
  const auto administration = set_vf != nullptr ? find_administration(*subject.device.parent, places) : std::nullopt;
  if (administration) {
    const auto pf = netlink::DeviceId::on_bus(administration->id.physical_function);
    const auto [key, value] = text_of_setting(set_vf->setting);
    return fmt::format("PF '{}' ({}) refused to set {} of its VF {} ({}) to {}", administration->pf.name, driver_text(pf, places.roots),
                       key, administration->id.number, subject.device.parent->address, value);
  }
  const auto* move = std::get_if<Move>(&step);
  return fmt::format("'{}' ({}) refused to {}", record.before.name, driver_text(subject.device, places.roots),
                     move != nullptr ? undone_part(*move, subject, places) : describe(step));
}

std::string rdma_advice(const Step& step, int error_number) {
  if (error_number == EEXIST) {
    return " Up to Linux 6.12 the name of an RDMA device is unique on the whole node, in whichever network namespace it is; later, in its "
           "namespace. Choose another 'rdmaName'.";
  }
  if (error_number == EOPNOTSUPP && std::holds_alternative<MoveRdma>(step)) {
    return " The driver cannot move its RDMA devices to another network namespace (efa, siw, and rxe up to Linux 6.12). Set 'rdma' to "
           "\"off\", "
           "or use the shared mode.";
  }
  return "";
}

std::string asked_by(const Step& step, int error_number, const AttachConfig& config) {
  const auto* set_vf = std::get_if<SetVf>(&step);
  const bool is_mac = sets_mac(step) || (set_vf != nullptr && set_vf->setting.mac);
  return is_about_rdma(step)                    ? rdma_advice(step, error_number)
         : is_mac && !config.mac_source.empty() ? fmt::format(" The MAC was asked for by {}.", config.mac_source)
         : set_vf != nullptr                    ? " Drivers differ in what they can set for a VF; what this one cannot has to be left out."
                                                : "";
}

[[noreturn]] void refuse(Code code, const netlink::Error& error, const std::string& what, const std::string& advice) {
  const auto& sentence = error.kernel_sentence();
  throw Error(
      code,
      fmt::format("{}: {}{}", what, std::generic_category().message(error.error_number()), sentence.empty() ? "" : " (" + sentence + ")"),
      fmt::format("errno {}.{}", error.error_number(), advice));
}

/// A VF in the host of which its PF says nothing is being reset, and nothing can be planned for it.
bool is_silent(const State& now, const State& wanted) {
  return now.side == Side::host && wanted.vf && !now.vf;
}

/// Nothing while a netdev that is made anew is not there yet.
std::optional<State> look_again(State now, const Record& record, Places& places) {
  if (!record.has_netdev()) {
    now.vf = read_vf(*record.device.parent, places);
    now.rdma = read_rdma(*record.device.parent, places);
    return now;
  }
  return read(record.device, places);
}

/// The attempts at one device.
class Attempt {
 public:
  Attempt(const Record& record, const AttachConfig& config, Context& context, Places& places)
      : record_(record), config_(config), context_(context), places_(places) {}

  /// True when the device is as it shall be. Throws Error 101 for a refusal that another attempt cannot change, or is not to.
  [[nodiscard]] bool succeeds(const State& now, const State& wanted, bool is_last) {
    is_mac_refused_ = false;
    is_made_anew_ = false;
    if (is_silent(now, wanted)) {
      if (is_last) {
        throw Error(Code::try_again_later, fmt::format("the PF of {} does not say what is set for it", record_.device.text()),
                    "The VF may be being reset.");
      }
      return false;
    }
    Subject subject{.device = record_.device, .side = now.side, .index = now.index, .name = now.name};
    const auto steps = plan(now, wanted);
    RdmaTurn rdma_turn{steps, "ADD of " + record_.owner.text(), Deadline{context_.time_for(context_.deadline.left())}};
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const auto& step = steps[at];
      try {
        rdma_turn.before(at);
        apply(step, subject, places_);
      } catch (const netlink::Error& error) {
        if (is_about_rdma(step) && !record_.rdma.is_required) {
          context_.log.warning(error.what(), {{"advice", rdma_advice(step, error.error_number())}});
          continue;
        }
        is_mac_refused_ = record_.before.vf && sets_mac(step) && is_mac_refusal(error.error_number());
        const bool may_be_repeated = is_mac_refused_ || (record_.before.vf && is_busy(error.error_number()));
        if (!may_be_repeated || is_last) {
          refuse(is_about_rdma(step) ? Code::rdma_not_met : Code::setting_refused, error, refused_part(step, subject, record_, places_),
                 asked_by(step, error.error_number(), config_));
        }
        return false;
      }
    }
    is_made_anew_ = std::ranges::any_of(steps, makes_netdev_anew);
    return !is_made_anew_;
  }

  [[nodiscard]] bool is_mac_refused() const { return is_mac_refused_; }
  /// The rest is to be planned for another netdev.
  [[nodiscard]] bool is_made_anew() const { return is_made_anew_; }

 private:
  const Record& record_;
  const AttachConfig& config_;
  Context& context_;
  Places& places_;
  bool is_mac_refused_ = false;
  bool is_made_anew_ = false;
};

}  // namespace

bool is_busy(int error_number) {
  return error_number == EBUSY || error_number == EAGAIN;
}

bool is_mac_refusal(int error_number) {
  return error_number == EADDRNOTAVAIL || error_number == EPERM || error_number == EACCES;
}

void carry_out(State now, const Target& target, const Record& record, const AttachConfig& config, Context& context, Places& places,
               const Pause& pause) {
  const Deadline patience{context.deadline.at_most(kBusyTime)};
  Attempt attempt{record, config, context, places};
  bool was_busy = false;
  while (!attempt.succeeds(now, target(now), patience.has_passed())) {
    was_busy = was_busy || !attempt.is_made_anew();
    std::optional<State> again;
    do {
      pause(kBusyPause);
      again = look_again(now, record, places);
    } while (!again && !patience.has_passed());
    if (again && attempt.is_made_anew()) {
      wait_for_udev(again->index, Deadline{context.time_for(kUdevTime)});
      again = look_again(now, record, places);
    }
    if (!again) {
      throw Error(Code::verification_failed, fmt::format("{} lost its network interface", record.device.text()),
                  "Its driver did not bring it back in time.");
    }
    now = std::move(*again);
    now.is_mac_refused = attempt.is_mac_refused();
  }
  if (was_busy) {
    context.log.info(fmt::format("the driver was busy for {} ms", (kBusyTime - patience.left()).count()));
  }
}

void carry_out(State now, const State& wanted, const Record& record, const AttachConfig& config, Context& context, Places& places) {
  carry_out(
      std::move(now), [&](const State&) { return wanted; }, record, config, context, places,
      [](auto time) { std::this_thread::sleep_for(time); });
}

}  // namespace cni
