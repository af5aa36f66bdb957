#!/bin/bash
# Records what a kernel answers to RTM_GETLINK of a physical function with three VFs, next to this script: see README.md. Needs root, the
# lab (docs/lab.md), a built plugin, python3:
#   ./record-vfs.sh KERNEL
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/commands" <<'COMMANDS'
modprobe -a igb igbvf
ip link set eth0 up
echo 3 >/sys/class/net/eth0/device/sriov_numvfs
until [ -e /sys/class/net/eth4 ] && [ "$(cat /sys/class/net/eth0/carrier)" = 1 ]; do sleep 0.1; done
ip link set eth0 vf 0 vlan 100 qos 3 spoofchk off trust on max_tx_rate 200 mac 02:00:00:00:be:01
ip link set eth0 vf 2 mac 00:00:00:00:00:00
ip netns add pod
echo '{"cniVersion": "1.1.0", "name": "n", "type": "fabric-nic", "deviceID": "0000:01:10.2"}' |
  CNI_COMMAND=ADD CNI_CONTAINERID=c CNI_NETNS=/run/netns/pod CNI_IFNAME=net1 CNI_PATH=/usr/lib/cni \
  strace -xx -s 65536 -e trace=sendto,recvfrom -o /lab/trace fabric-nic
COMMANDS
"$root/tests/lab/lab" run -k "$1" -s "$folder" -p "$root/build/release/fabric-nic" -- bash /lab/commands >&2
# The answer to the one request whose IFLA_EXT_MASK (type 0x1d) is RTEXT_FILTER_VF with RTEXT_FILTER_SKIP_STATS, 9.
python3 - "$folder/trace" >"$here/pf-with-vfs.hex" <<'PYTHON'
import re, sys
lines = open(sys.argv[1]).read().splitlines()
asked = next(n for n, line in enumerate(lines) if r'\x08\x00\x1d\x00\x09\x00\x00\x00' in line)
answer = next(line for line in lines[asked:] if line.startswith("recvfrom"))
digits = re.search(r'"([^"]*)"', answer).group(1).replace("\\x", "")
print("\n".join(digits[at:at + 64] for at in range(0, len(digits), 64)))
PYTHON
