#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct Command {
  std::vector<std::string> words;
  std::vector<std::string> environment;
  std::string input;
};

struct Cost {
  double wall = 0;       ///< milliseconds, as all times here
  double moving = 0;     ///< in the request that moves a NIC; of watched calls only
  double held = 0;       ///< stopped, while its requests were looked at
  double processor = 0;  ///< user and system time
  long peak_memory = 0;  ///< KiB
  std::string output;
};

/// How long the request is that moves the NIC, once that is known.
using MoveSize = std::optional<std::uint32_t>;

/// Runs the command; throws when it fails. With `watched` the request that moves a NIC is timed; the first such call finds its size, and
/// costs more than later ones.
Cost call(const Command& command, MoveSize* watched = nullptr);

/// The result of a system call; throws when that is an error.
int check(long result, const std::string& what);
