# That the machine brings back output, files and status, does not outlive its time, says why it died, and is not disturbed by another. Sourced
# by `lab`.

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

command_self_test() {
  local folder status=0 output first second
  prepare "$(default_kernel)"
  folder=$(mktemp -d -p "$scratch")
  mkdir "$folder/share"

  # Two at a time, each with a folder and a status of its own.
  ("$here/lab" run -s "$folder/share" -- bash -c 'echo release $(uname -r); echo "to stderr" >&2; echo file >/lab/file; ls /lab; exit 7' \
    >"$folder/first" 2>&1) &
  first=$!
  ("$here/lab" run -- bash -c 'sleep 5; ls /lab; ping -c 1 -W 1 192.0.2.1; exit 8' >"$folder/second" 2>&1) &
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
  expect "and shows the console's last lines" "Kernel panic" "$output"
}
