# The virtual machine: what it consists of, one run of it, and what comes back. Sourced by `lab`.

# Two igb cards on one wire, each behind a root port of its own, so that they are 0000:01:00.0 and 0000:02:00.0; an IOMMU for vfio-pci.
hardware=(-machine q35 -accel tcg,thread=single -cpu max -smp 2 -m 1536 -nodefaults -no-user-config -display none -no-reboot
  -device intel-iommu
  -netdev hubport,hubid=0,id=wire1 -device pcie-root-port,id=slot1,slot=1,bus=pcie.0
  -device igb,bus=slot1,netdev=wire1,mac=52:54:00:00:01:00
  -netdev hubport,hubid=0,id=wire2 -device pcie-root-port,id=slot2,slot=2,bus=pcie.0
  -device igb,bus=slot2,netdev=wire2,mac=52:54:00:00:02:00)

# Nothing of the machine is secret, and nobody else runs in it; self-tests of ciphers and keys that no test uses take an emulated processor
# seconds. Whether the timer interrupts within a few of its ticks says nothing on a machine outside that is busy, and no is a panic.
kernel_arguments="console=ttyS0 quiet oops=panic panic=-1 intel_iommu=on mitigations=off nokaslr audit=0 apparmor=0 random.trust_cpu=1 cryptomgr.notests=1 no_timer_check
initcall_blacklist=crypto_kdf108_init,jent_mod_init,init_encrypted,load_system_certificate_list,bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init"

# qemu FOLDER OPTION...: with that folder as /lab. The images are put together for each run: nobody changes them meanwhile.
qemu() {
  local folder=$1 images
  shift
  images=$(mktemp -p "$scratch")
  make_product "$images.product"
  cat "$userland" "$kernel_modules" "$images.product" >"$images"
  rm "$images.product"
  # Open, it stays until QEMU has read it, and is gone whatever happens.
  exec {image_fd}<"$images"
  rm "$images"
  # Nobody ends a machine whose caller was killed.
  exec setpriv --pdeathsig TERM qemu-system-x86_64 "${hardware[@]}" -kernel "$products/vmlinux" -initrd "/proc/self/fd/$image_fd" \
    -append "${kernel_arguments//$'\n'/ }" -virtfs "local,path=$folder,mount_tag=lab,security_model=none" "$@"
}

# run_machine SECONDS FOLDER COMMAND...: an empty FOLDER is one of its own.
run_machine() {
  local time=$1 folder=$2 status=0 machine
  shift 2
  [[ -n "$folder" ]] || folder=$(mktemp -d -p "$scratch")
  rm -f "$folder"/{status,output,console,dmesg}
  printf '%q ' "$@" >"$folder/command"
  : >"$folder/output"
  : >"$folder/console"
  (qemu "$folder" -serial "file:$folder/console" >"$folder/qemu" 2>&1 </dev/null) &
  machine=$!
  tail --follow --lines=+1 --pid="$machine" --sleep-interval=0.2 "$folder/output" &
  local printer=$! end=$((SECONDS + time))
  while kill -0 "$machine" 2>/dev/null && ((SECONDS < end)); do
    sleep 0.1
  done
  if kill -0 "$machine" 2>/dev/null; then
    kill "$machine"
    status=124
  fi
  wait "$machine" 2>/dev/null || true
  wait "$printer" || true
  report "$folder" "$status" "$time"
}

# Gives the command's status, or 124 or 125 with the reason. What a kernel complained of did not work, whatever the command says; but for
# the watchdog of a transmit queue, which on a slow machine complains of that.
report() {
  local folder=$1 status=$2 time=$3 log
  if [[ -e "$folder/status" ]]; then
    status=$(<"$folder/status")
  elif ((status == 124)); then
    say "not done after $time s; the console's last lines:"
    tail -n 15 "$folder/console" >&2
  else
    status=125
    say "the machine died; what QEMU and the console said last:"
    tail -n 5 "$folder/qemu" >&2
    tail -n 30 "$folder/console" >&2
  fi
  log=$(cat "$folder/dmesg" "$folder/console" 2>/dev/null) || true # a machine that died has left no dmesg
  if grep -E "$kernel_complaints" <<<"$log" | grep -v dev_watchdog >/dev/null; then
    say "the kernel complained:"
    grep -E -A 12 "$kernel_complaints" <<<"$log" | sed -n 1,40p >&2
    status=125
  fi
  return "$status"
}
kernel_complaints='Kernel panic|BUG:|Oops|WARNING: .* at |general protection|refcount_t:'

run_shell() {
  local folder status=0
  folder=$(mktemp -d -p "$scratch")
  cp "$here/guest/shellrc" "$folder/"
  # Ctrl-C belongs to the shell in there.
  (qemu "$folder" -chardev stdio,id=terminal,signal=off -serial chardev:terminal -monitor none 2>"$folder/qemu") || status=$?
  ((status == 0)) || cat "$folder/qemu" >&2
  return "$status"
}
