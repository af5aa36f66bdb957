#!/bin/sh
# Records what this machine's kernel answers to RTM_GETLINK, one file an interface, next to this script: see README.md. Needs root,
# iproute2, bridge and macvlan in the kernel, python3. Works in namespaces of its own; of the machine it only reads the NIC that it is given:
#   ./record.sh [NIC]
set -eu
cd "$(dirname "$0")"
if [ "${1-}" != in-namespaces ]; then
  [ -z "${1-}" ] || python3 record.py dump "$1" virtio-nic.hex
  exec unshare --net --mount "$0" in-namespaces
fi

mount -t tmpfs none /mnt
mkdir /mnt/bpf
mount -t bpf none /mnt/bpf
python3 record.py pin /mnt/bpf/pass

unshare --net sleep 60 &
fabric=$!
trap 'kill $fabric' EXIT
while [ "$(readlink "/proc/$fabric/ns/net")" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done

ip link set lo up
ip link add nic0 address 02:00:00:00:00:01 index 10 type veth peer name peer0
ip link set peer0 netns $fabric
ip link property add dev nic0 altname rail0 altname enp59s0f0np0-of-the-left-rail
ip link set nic0 mtu 3000 alias 'the left rail' txqueuelen 500 promisc on xdpdrv pinned /mnt/bpf/pass
ip link set nic0 up

# A value of its own for every sysctl that takes it, so that two that were mixed up show.
value=2
for file in /proc/sys/net/ipv[46]/conf/nic0/*; do
  value=$((value + 1))
  case $file in */disable_ipv6 | */stable_secret) continue ;; esac
  { echo $value >"$file" || echo 1 >"$file" || true; } 2>/dev/null
done
(cd /proc/sys && grep -s '' net/ipv[46]/conf/nic0/*) >nic0.sysctls || true

echo 4321 >/proc/sys/net/ipv4/neigh/nic0/base_reachable_time_ms
python3 record.py neighbours nic0

ip link add br0 address 02:00:00:00:00:02 index 11 type bridge
ip link add port0 address 02:00:00:00:00:03 index 12 type veth peer name port0-peer address 02:00:00:00:00:04 index 13
ip link set port0 master br0 xdpgeneric pinned /mnt/bpf/pass allmulticast on
ip link add up0 link port0-peer address 02:00:00:00:00:05 index 14 type macvlan mode bridge

for interface in lo nic0 br0 port0 up0; do
  python3 record.py dump $interface $interface.hex
done
python3 record.py dump-with-statistics up0 up0-with-statistics.hex
