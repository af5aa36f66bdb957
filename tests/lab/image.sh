# What the lab's machine boots into: archives for the kernel to unpack into its memory, one after the other. Sourced by `lab`.

# In the machine besides the plugin and the tests. The shared libraries come with what needs them.
tools=(bash busybox-static containernetworking-plugins ethtool ibverbs-providers ibverbs-utils iproute2 iputils-ping kmod
  libnl-3-200 libnl-route-3-200 libstdc++6 strace udev)
# What these depend on for their installation, and what no test runs: memory and time to unpack.
unneeded=(adduser base-passwd coreutils cpp debconf debianutils dpkg gcc init-system-helpers login mount passwd perl-base
  sensible-utils tar zlib1g-dev)
cni_plugins=(dhcp host-local static tuning)

modules=(9p 9pnet_virtio 8021q af_packet bonding bridge crc32_generic dummy ib_umad ib_uverbs igb igbvf macvlan pci_stub rdma_rxe veth
  vfio_iommu_type1 vfio_pci virtio_pci)

# archive FOLDER FILE: as the kernel unpacks it. Appears complete or not at all.
archive() {
  (cd "$1" && find . -print0 | LC_ALL=C sort -z | cpio --null --create --format=newc --quiet --owner=0:0) >"$2.new"
  mv "$2.new" "$2"
}

# The root file system: Debian's packages of the release that the tests were built on. Sets userland.
make_userland() {
  local suite tree names
  suite=$(own_release)
  userland=$cache/userland/$suite-$(fingerprint "$here/image.sh").cpio
  if [[ -e "$userland" ]]; then
    return
  fi
  tree=$(mktemp -d -p "$scratch")
  mkdir -p "$cache/userland"
  merged_tree "$tree"
  read_lists "$suite"
  names=$(closure "$suite" "${tools[@]}" | grep -vxF -f <(printf '%s\n' "${unneeded[@]}"))
  mapfile -t names <<<"$names"
  unpack "$suite" "$tree" "${names[@]}"
  find "$tree/usr/lib/cni" -type f | grep -v -E "/($(IFS='|' && echo "${cni_plugins[*]}"))$" | xargs rm
  rm -rf "$tree"/usr/share/{bash-completion,lintian,bug,common-licenses,initramfs-tools} "$tree"/usr/lib/systemd/system "$tree/usr/lib/udev/hwdb.d"
  mkdir -p "$tree"/{dev,etc,lab,opt/cni/bin,proc,root,run,sys,tmp,var/lib/cni,var/log}
  ln -sfn bash "$tree/usr/bin/sh"
  local applet
  for applet in $("$tree/usr/bin/busybox" --list); do
    [[ -e "$tree/usr/bin/$applet" || -e "$tree/usr/sbin/$applet" ]] || ln -s busybox "$tree/usr/bin/$applet"
  done
  printf 'root:x:0:0:root:/root:/bin/bash\n' >"$tree/etc/passwd"
  ldconfig -r "$tree"
  archive "$tree" "$userland"
  find "$cache/userland" -name '*.cpio' -mmin +1440 -delete # superseded
  rm -r "$tree"
}

# The modules of the kernel in use, and those that were built for it. Sets kernel_modules.
make_modules() {
  kernel_modules=$products/modules-$(fingerprint "$here/image.sh" "$products"/*.ko).cpio
  if [[ -e "$kernel_modules" ]]; then
    return
  fi
  local tree module file
  tree=$(mktemp -d -p "$scratch")
  local folder=$tree/usr/lib/modules/$release
  mkdir -p "$folder/extra"
  cp "$kernel_files/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$folder/"
  for module in "${modules[@]}"; do
    modprobe --dirname "$kernel_files" --set-version "$release" --show-depends "$module" || true # not every kernel has each
  done 2>/dev/null | awk -v folder="/modules/$release/" '$1 == "insmod" {print substr($2, index($2, folder) + length(folder))}' |
    sort -u >"$tree/files"
  while read -r file; do
    mkdir -p "$folder/$(dirname "$file")"
    if [[ "$file" == *.xz ]]; then
      xz -dc "$kernel_files/lib/modules/$release/$file" >"$folder/${file%.xz}"
    else
      cp "$kernel_files/lib/modules/$release/$file" "$folder/$file"
    fi
  done <"$tree/files"
  rm "$tree/files"
  cp "$products"/*.ko "$folder/extra/"
  merged_tree "$tree"
  depmod -b "$tree" "$release"
  archive "$tree" "$kernel_modules"
  find "$products" -name '*.cpio' -mmin +1440 -delete
  rm -r "$tree"
}

# make_product FILE: the plugin, /init, and the programs of `programs`.
make_product() {
  local tree program
  tree=$(mktemp -d -p "$scratch")
  mkdir -p "$tree"/{opt/cni/bin,usr/bin}
  install "$here/guest/init" "$tree/init"
  install "$here/guest/suite" "$tree/usr/bin/lab-suite"
  install "$plugin" "$tree/opt/cni/bin/fabric-nic"
  ln -s /opt/cni/bin/fabric-nic "$tree/usr/bin/fabric-nic"
  for program in "${programs[@]}"; do
    install --strip "$program" "$tree/usr/bin/"
  done
  merged_tree "$tree"
  archive "$tree" "$1"
  rm -r "$tree"
}
