#!/bin/bash
# Records what a kernel answers of RDMA devices, next to this script: see README.md. Needs root, the lab (docs/lab.md), python3:
#   ./record-rdma.sh KERNEL
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../..
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/commands" <<'COMMANDS'
modprobe -a igb rdma_rxe ib_uverbs lab_hca
ip link set eth1 up
until [ "$(cat /sys/class/net/eth1/carrier)" = 1 ]; do sleep 0.1; done
echo '0000:01:00.0 mlx5_0' >/sys/module/lab_hca/parameters/create
echo '0000:02:00.0 mlx5_2' >/sys/module/lab_hca/parameters/create
strace -f -xx -s 65536 -e trace=recvmsg,recvfrom -o /lab/trace bash -c 'rdma dev; rdma link; rdma system; ibv_devinfo'
COMMANDS
"$root/tests/lab/lab" run -k "$1" -s "$folder" -- bash /lab/commands >&2
python3 - "$folder/trace" "$here" <<'PYTHON'
import re, struct, sys
# By the attribute that makes it that answer: 67 is a device's protocol, 12 a port's state, 72 a char device's number, 66 the mode.
# Of the last device that says so.
names, found = {67: "rdma-device", 12: "rdma-port", 72: "rdma-char-device", 66: "rdma-mode"}, {}
for line in open(sys.argv[1]):
    for text in re.findall(r'nlmsg_type=0x14[^"]*"((?:\\x..)+)"', line):
        payload, at = bytes.fromhex(text.replace("\\x", "")), 0
        while at + 4 <= len(payload):
            size, number = struct.unpack("HH", payload[at:at + 4])
            if number in names:
                found[names[number]] = payload
            at += (size + 3) & ~3
assert len(found) == len(names), found
for name, payload in found.items():
    with open(f"{sys.argv[2]}/{name}.hex", "w") as file:
        for at in range(0, len(payload), 32):
            file.write(payload[at:at + 32].hex() + "\n")
PYTHON
