#!/usr/bin/env bash
# Installs what is missing of the packages that building, testing and the demo need ("lint": those of the format and tidy checks, "lab": those
# of the virtual machine).
# Calls apt only when something is missing, and never removes a package.
set -euo pipefail

case "${1:-build}" in
  build)
    packages=(build-essential cmake pkgconf libnl-3-dev libnl-route-3-dev libibverbs-dev ibverbs-providers libfmt-dev nlohmann-json3-dev catch2
              containernetworking-plugins iproute2 iputils-ping strace tcpdump dnsmasq-base)
    boost_needed=yes
    ;;
  lint)
    packages=(clang-format-19 clang-tidy-19)
    boost_needed=no
    ;;
  lab)
    packages=(build-essential cpio iproute2 kmod xz-utils zstd)  # iproute2 brings the libelf that building a module needs
    boost_needed=no
    ;;
  *)
    echo "usage: $0 [build|lint|lab]" >&2
    exit 2
    ;;
esac

is_installed() { [[ "$(dpkg-query -W -f='${db:Status-Status}\n' "$1" 2>/dev/null)" == installed* ]]; }
has_boost() { grep -qsE '^#define BOOST_VERSION (108[1-9]|109|1[1-9])' /usr/include/boost/version.hpp; }
in_package_lists() { [[ -n "$(apt-cache madison "$1" 2>/dev/null)" ]]; }

fail() {
  echo "$*" >&2
  exit 1
}
source "$(dirname "$(realpath "$0")")/lab/archive.sh"

# An emulated card with virtual functions came with QEMU 8.0; Debian 12 has 7.2, and a newer one among its backports.
has_igb() { command -v qemu-system-x86_64 >/dev/null && qemu-system-x86_64 -device help | grep -q '^name "igb"'; }
install_qemu() {
  local lists status=0
  if apt-cache madison qemu-system-x86 | awk '{split($3, version, /[:.]/); if (version[2] >= 8) found = 1} END {exit !found}'; then
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends --no-remove qemu-system-x86
    return
  fi
  # The backports of this release, from the mirror that apt uses, for this one call.
  lists=$(mktemp -d)
  mkdir -p "$lists/parts" "$lists/lists/partial"
  cp -r /etc/apt/sources.list.d/. "$lists/parts/"
  [[ ! -e /etc/apt/sources.list ]] || cp /etc/apt/sources.list "$lists/parts/machine.list"
  source_line "$(own_release)-backports" >"$lists/parts/backports.list"
  local apt=(apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$lists/parts" -o Dir::State::Lists="$lists/lists"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  "${apt[@]}" update &&
    DEBIAN_FRONTEND=noninteractive "${apt[@]}" install --yes --no-install-recommends --no-remove --target-release \
      "$(own_release)-backports" qemu-system-x86 || status=$?
  rm -r "$lists"
  return "$status"
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ "$boost_needed" == yes ]] && ! has_boost; then
  missing+=(boost)
fi
if [[ "${1:-build}" == lab ]] && ! has_igb; then
  missing+=(qemu-system-x86)
fi
if ((${#missing[@]} == 0)); then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "Missing: ${missing[*]} (Debian's names; Boost 1.81 or newer). There is no apt-get here: install them by hand." >&2
  exit 1
fi
if ((EUID != 0)); then
  echo "Missing: ${missing[*]}. Installing them needs root: sudo make -f Makefile.integration deps deps-lint deps-lab" >&2
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
if [[ "${missing[-1]}" == qemu-system-x86 ]]; then
  [[ -n "$(known_mirror)" ]] || apt-get update
  install_qemu
  unset 'missing[-1]'
  ((${#missing[@]} > 0)) || exit 0
fi
lists_complete=yes
for package in "${missing[@]/#boost/libboost-dev}"; do
  in_package_lists "$package" || lists_complete=no
done
if [[ "$lists_complete" == no ]] || ! install_missing; then # lists that are out of date name files that are gone
  apt-get update
  install_missing
fi
