#!/usr/bin/env bash
# Shows one attachment from ADD to DEL with real devices and real IPAM: demo.sh path/to/fabric-nic
# Everything happens in namespaces that vanish with this process, so nothing of the machine is touched, also after Ctrl-C.
set -euo pipefail

plugin=$(realpath "${1:?usage: $0 path/to/fabric-nic}")
if [[ "${2:-}" != inside ]]; then
  exec unshare --net --mount bash "$0" "$plugin" inside
fi

ipam_directory=/usr/lib/cni # Debian's; /opt/cni/bin elsewhere
[[ -x $ipam_directory/host-local ]] || ipam_directory=/opt/cni/bin
log=/run/fabric-nic.log # in a /run of our own
declare -A nic_of=([pod-a]=rail0 [pod-b]=rail1) result_of=()

# --- How this script talks ---------------------------------------------------------------------------------------------------------------

bold='' plain=''
if [[ -t 1 ]]; then
  bold=$'\e[1m' plain=$'\e[0m'
fi
heading() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
say() { printf '   %s\n' "$@"; }
show() { sed 's/^/      /'; }
run() { # run COMMAND...: shows the command and what it says
  printf '    $ %s\n' "$*"
  "$@" 2>&1 | show
}
verify() { # verify SENTENCE COMMAND...: the sentence is true when the command succeeds
  "${@:2}" >/dev/null 2>&1 || fail "it is not true that $1"
  say "verified: $1"
}
fail() {
  say "FAILED: $1"
  exit 1
}
verdict() {
  local status=$?
  if [[ -n "$told_to_the_end" ]]; then
    heading "PASSED: both NICs were attached, verified, used with full-size packets, and are home exactly as they were."
    return
  fi
  if [[ -s $log ]]; then
    heading "What the plugin logged last"
    tail -n 5 "$log" | show
  fi
  heading "FAILED (status $status): see above. Nothing of this is left on the machine."
}
told_to_the_end=''
trap verdict EXIT
trap 'exit 130' INT TERM

# --- The scene ---------------------------------------------------------------------------------------------------------------------------

build_scene() {
  mount -t tmpfs tmpfs /run
  mount -t tmpfs tmpfs /var/lib
  mount -t sysfs sysfs /sys # shows the devices of the namespace that mounts it
  [[ ! -d /etc/cni ]] || mount -t tmpfs tmpfs /etc/cni

  ip link set lo up
  ip netns add switch
  ip -n switch link add fabric up type bridge
  local port
  for port in 0 1; do
    ip link add "rail$port" address "02:fa:b0:00:00:0$port" type veth peer name "port$port" netns switch
    ip -n switch link set "port$port" mtu 9000 master fabric up
    ip link property add dev "rail$port" altname "enp59s0f$port"
    ip link set "rail$port" alias "rail $port of this node" txqueuelen 2000 up
  done
  ip netns add pod-a
  ip netns add pod-b
}

devices() { # all that the kernel tells of the two NICs, without the number it gave them
  local nic
  for nic in rail0 rail1; do
    for _ in {1..100}; do # the operational state follows a moment later
      grep -q up "/sys/class/net/$nic/operstate" && break
      sleep 0.05
    done
    ip -d link show "$nic" | sed 's/^[0-9]*: //'
  done
}

address_of() { ip -n "$1" -4 -o addr show net1 | sed 's/.*inet \([0-9.]*\).*/\1/'; }
not() { ! "$@"; }
is_empty() { [[ -z "$(find "$@" -print -quit 2>/dev/null)" ]]; }

# --- What Multus does --------------------------------------------------------------------------------------------------------------------

configuration() { # configuration NIC [RESULT OF ADD]: the NetworkAttachmentDefinition, and after ADD what that said, too
  local result_key=${2:+$',\n  "prevResult": '}${2:-}
  cat <<JSON
{
  "cniVersion": "1.0.0",
  "name": "fabric",
  "type": "fabric-nic",
  "device": "$1",
  "mtu": 9000,
  "ipam": { "type": "host-local", "subnet": "10.56.0.0/24" }$result_key
}
JSON
}

call() { # call VERB POD: prints what the plugin answers
  configuration "${nic_of[$2]}" "${result_of[$2]:-}" |
    CNI_COMMAND=$1 CNI_CONTAINERID=$(sha256sum <<<"$2" | cut -d ' ' -f 1) CNI_NETNS=/run/netns/$2 CNI_IFNAME=net1 \
      CNI_PATH=$(dirname "$plugin"):$ipam_directory CNI_ARGS="IgnoreUnknown=true;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$2" \
      "$plugin" 2>>"$log"
}
announce() { printf '    $ %s\n' "CNI_COMMAND=$1 CNI_NETNS=/run/netns/$2 CNI_IFNAME=net1 fabric-nic < ${nic_of[$2]}.json"; }

# --- The story ---------------------------------------------------------------------------------------------------------------------------

heading "1. A node with two fabric NICs, and two pods"
build_scene
before=$(devices)
say "A network namespace stands in for the node, the switch and each pod; one end of a veth pair plays a NIC." \
  "The NICs, rail0 and rail1, are at MTU 1500. The switch carries 9000. The pods have no NIC yet."
run ip -br link show type veth
run ip -n pod-a -br link

heading "2. ADD: each pod gets a whole NIC, at MTU 9000, with an address"
say "Multus hands the plugin this, for rail0:"
configuration rail0 | show
for pod in pod-a pod-b; do
  announce ADD $pod
  result_of[$pod]=$(call ADD $pod) || fail "ADD for $pod: ${result_of[$pod]}"
  show <<<"${result_of[$pod]}"
done

heading "3. What the pods see"
run ip -n pod-a -br addr
run ip -n pod-a link show net1
for pod in pod-a pod-b; do
  verify "$pod has net1, up, with MTU 9000" grep -q '[<,]UP[,>].* mtu 9000 ' <<<"$(ip -n $pod link show net1)"
  verify "$pod has an address from IPAM" grep -q '^10\.56\.0\.' <<<"$(address_of $pod)"
done
verify "the node has given both away" not ls -d /sys/class/net/rail*
verify "what they were like is on record" not is_empty /var/lib/cni/fabric-nic -type f

heading "4. Full-size packets from pod to pod"
say "8972 bytes of data, 8 of ICMP and 20 of IP make a packet of exactly 9000, which may not be fragmented:"
run ip netns exec pod-a ping -c 3 -i 0.2 -W 2 -M "do" -s 8972 "$(address_of pod-b)"
verify "a packet of 9001 does not pass" not ip netns exec pod-a ping -c 1 -W 2 -M "do" -s 8973 "$(address_of pod-b)"

heading "5. CHECK: is the attachment what ADD promised?"
for pod in pod-a pod-b; do
  announce CHECK $pod
  answer=$(call CHECK $pod) || fail "CHECK for $pod: $answer"
  say "It is."
done
say "Now something in pod-a changes its NIC behind our back, and CHECK has to notice:"
run ip netns exec pod-a ip link set net1 mtu 1400 address 02:00:00:00:00:66 txqueuelen 10 promisc on
announce CHECK pod-a
answer=$(call CHECK pod-a) && fail "CHECK did not notice"
show <<<"$answer"

heading "6. DEL: the NICs come home as they were"
for pod in pod-a pod-b; do
  announce DEL $pod
  answer=$(call DEL $pod) || fail "DEL for $pod: $answer"
done
after=$(devices)
run ip -br link show type veth
say 'Name, MTU, MAC, alias, altname, queue length, flags: "ip -d link" before ADD and after DEL, compared:'
diff <(echo "$before") <(echo "$after") | show || fail "a NIC did not come home as it was"
say "no difference"
verify "the pods have no NIC any more" not ip -n pod-a link show net1
verify "IPAM has its addresses back" is_empty /var/lib/cni/networks -name '10.*'
verify "the plugin has no record left" is_empty /var/lib/cni/fabric-nic -type f
told_to_the_end=yes
