#pragma once

#include <algorithm>
#include <chrono>

namespace cni {

/// The moment by which an invocation has to end; every wait takes the smaller of its own limit and what is left.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::chrono::milliseconds from_now) : end_(Clock::now() + from_now) {}

  [[nodiscard]] std::chrono::milliseconds left() const {
    return std::max(std::chrono::milliseconds{0}, std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now()));
  }
  [[nodiscard]] std::chrono::milliseconds at_most(std::chrono::milliseconds wish) const { return std::min(wish, left()); }
  [[nodiscard]] bool has_passed() const { return left().count() == 0; }

 private:
  Clock::time_point end_;
};

}  // namespace cni
