#!/usr/bin/env bash
# Installs what is missing of the packages that building, testing and the demo need ("lint": those of the format and tidy checks).
# Calls apt only when something is missing, and never removes a package.
set -euo pipefail

case "${1:-build}" in
  build)
    packages=(build-essential cmake pkgconf libnl-3-dev libnl-route-3-dev libfmt-dev nlohmann-json3-dev catch2
              containernetworking-plugins iproute2 iputils-ping strace tcpdump dnsmasq-base)
    boost_needed=yes
    ;;
  lint)
    packages=(clang-format-19 clang-tidy-19)
    boost_needed=no
    ;;
  *)
    echo "usage: $0 [build|lint]" >&2
    exit 2
    ;;
esac

is_installed() { [[ "$(dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null)" == installed* ]]; }
has_boost() { grep -qsE '^#define BOOST_VERSION (108[1-9]|109|1[1-9])' /usr/include/boost/version.hpp; }
in_package_lists() { [[ -n "$(apt-cache madison "$1" 2>/dev/null)" ]]; }

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ "$boost_needed" == yes ]] && ! has_boost; then
  missing+=(boost)
fi
if ((${#missing[@]} == 0)); then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "Missing: ${missing[*]} (Debian's names; Boost 1.81 or newer). There is no apt-get here: install them by hand." >&2
  exit 1
fi
if ((EUID != 0)); then
  echo "Missing: ${missing[*]}. Installing them needs root: sudo make -f Makefile.integration deps deps-lint" >&2
  exit 1
fi

install_missing() {
  # Debian 12's own default, libboost-dev, is 1.74: too old. Newer releases have no libboost1.81-dev.
  local boost=libboost-dev
  if in_package_lists libboost1.81-dev; then
    boost=libboost1.81-dev
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends --no-remove "${missing[@]/#boost/$boost}"
}

echo "Installing: ${missing[*]}"
lists_complete=yes
for package in "${missing[@]/#boost/libboost-dev}"; do
  in_package_lists "$package" || lists_complete=no
done
if [[ "$lists_complete" == no ]] || ! install_missing; then # lists that are out of date name files that are gone
  apt-get update
  install_missing
fi
