# That the machine brings back output, files and status, does not outlive its time, says why it died, needs no network and is not disturbed by
# another, and that its shell has what it promises. Sourced by `lab`.

# expect WHAT WANTED SEEN: a number is what was seen, a text is in it.
expect() {
  local what=$1 wanted=$2 seen=$3
  if [[ "$seen" == "$wanted" || "$wanted" != [0-9]* && "$seen" == *"$wanted"* ]]; then
    say "ok: $what"
  else
    say "NOT SO: $what"
    printf 'wanted: %s\nseen: %s\n' "$wanted" "$seen" >&2
    return 1
  fi
}

# What somebody types waits for the prompt.
type_into_shell() {
  local end=$((SECONDS + 120))
  until grep -q 'Ctrl-D' "$1" || ((SECONDS >= end)); do
    sleep 0.2
  done
  cat
}

test_shell() {
  local folder=$1 output
  : >"$folder/shell"
  type_into_shell "$folder/shell" <<'TYPED' | timeout 180 "$here/lab" shell >"$folder/shell" 2>&1 || true
echo "cards $(ls /sys/bus/pci/drivers/igb | grep -c 0000:) functions $(ls /sys/bus/pci/drivers/igbvf | grep -c 0000:)"
echo "devices $(rdma link | grep -c mlx5_) in $(command -v fabric-nic)"
attach 0000:01:10.0 pod-a 2>/dev/null | grep pciID && ip -n pod-a -br link show net1
detach pod-a 2>/dev/null; echo "detached with $?"
exit
TYPED
  output=$(tr -d '\r' <"$folder/shell")
  expect "the shell has two cards with VFs" "cards 2 functions 8" "$output"
  expect "and RDMA devices, and the plugin on the path" "devices 8 in /usr/bin/fabric-nic" "$output"
  expect "what it attaches is in the pod" $'"pciID": "0000:01:10.0"\nnet1 ' "$output"
  expect "and is detached" "detached with 0" "$output"
}

command_self_test() {
  local folder status=0 output first second
  prepare "$(default_kernel)"
  folder=$(mktemp -d -p "$scratch")
  mkdir "$folder/share"

  # Two at a time, each with a folder and a status of its own.
  ("$here/lab" run -s "$folder/share" -- bash -c 'echo release $(uname -r); echo "to stderr" >&2; echo file >/lab/file; ls /lab; exit 7' \
    >"$folder/first" 2>&1) &
  first=$!
  (unshare --net "$here/lab" run -- bash -c 'sleep 5; ls /lab; ping -c 1 -W 1 192.0.2.1; exit 8' >"$folder/second" 2>&1) &
  second=$!
  wait "$first" || status=$?
  expect "a command's status comes back" 7 "$status"
  expect "its output too" "release $release" "$(<"$folder/first")"
  expect "and what it writes to stderr" "to stderr" "$(<"$folder/first")"
  expect "and the file that it wrote" file "$(cat "$folder/share/file")"
  status=0
  wait "$second" || status=$?
  expect "the other machine's status is its own" 8 "$status"
  [[ "$(<"$folder/second")" != *file* ]] || expect "the other machine has another folder" "no file" "$(<"$folder/second")"
  expect "there is no network outside" "unreachable" "$(<"$folder/second")"

  status=0
  output=$("$here/lab" run -t 45 -- bash -c 'echo "<1>still here" >/dev/kmsg; sleep 1000' 2>&1) || status=$?
  expect "a hang ends with the time" 124 "$status"
  expect "and shows the console's last lines" "still here" "$output"
  status=0
  output=$("$here/lab" run -- bash -c 'echo c >/proc/sysrq-trigger' 2>&1) || status=$?
  expect "a kernel that dies is told from a command that fails" 125 "$status"
  expect "and shows what the kernel complained of" "Kernel panic" "$output"
  status=0
  output=$("$here/lab" run -- bash -c 'echo "WARNING: CPU: 0 PID: 1 at the self-test" >/dev/kmsg' 2>&1) || status=$?
  expect "what a kernel warns of is no success" 125 "$status"
  expect "and is shown" "at the self-test" "$output"
  test_shell "$folder"
}
