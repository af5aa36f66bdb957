#pragma once

#include "cni/error.hpp"
#include "support/catch.hpp"

/// The cni::Error that the action throws; one of code 0 when it throws none.
template <typename Action>
cni::Error thrown(const Action& action) {
  try {
    action();
  } catch (const cni::Error& error) {
    return error;
  }
  return {0, "nothing was thrown"};
}
