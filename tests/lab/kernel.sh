# The lab's kernels and the modules that are built for them. Sourced by `lab`.

kernel_names() { awk '!/^#/ && NF {print $1}' "$here/kernels"; }

# use_kernel NAME: unpacks it once; from then on `release` is its uname -r, `kernel_files` where its packages are unpacked, `products` where
# what is made of them is, and `compiler_release` the Debian release that builds for it.
use_kernel() {
  local kernel=$1 suite
  read -r suite compiler_release < <(awk -v name="$kernel" '$1 == name {print $2, $3}' "$here/kernels") ||
    fail "there is no kernel '$kernel'; there are: $(kernel_names | paste -sd ' ')"
  kernel_files=$cache/kernels/$kernel
  if [[ "$suite" == /* ]]; then
    kernel_files=$suite
  elif [[ ! -e "$kernel_files/complete" ]]; then
    fetch_kernel "$suite"
  fi
  release=$(basename "$(ls -d "$kernel_files"/usr/src/linux-headers-*-amd64)")
  release=${release#linux-headers-}
  products=$cache/products/$release
  mkdir -p "$products"
  if [[ ! "$products/vmlinux" -nt "$(kernel_image)" ]]; then
    unpack_kernel_image "$(kernel_image)" "$products/vmlinux"
  fi
}

# The newest kernel for which the suite has headers too; how many packages it comes in has changed over time.
fetch_kernel() {
  local suite=$1 headers names
  read_lists "$suite"
  headers=$(in_suite "$suite" apt-cache depends linux-headers-amd64 | sed -nE 's/.*Depends: (linux-headers-[0-9].*)/\1/p')
  [[ -n "$headers" ]] || fail "suite $suite has no kernel; name another one, or a folder, in $here/kernels"
  names=$(in_suite "$suite" apt-cache depends --recurse --important "$headers" "${headers/headers/image}" |
    grep -E '^linux-(image|modules|binary|base|headers|kbuild|compiler-gcc)-[0-9]' | grep -v -- '-unsigned$' | sort -u)
  rm -rf "$kernel_files" "$cache/products/${headers#linux-headers-}"
  merged_tree "$kernel_files"
  mapfile -t names <<<"$names"
  unpack "$suite" "$kernel_files" "${names[@]}"
  depmod -b "$kernel_files" "${headers#linux-headers-}"
  touch "$kernel_files/complete"
}

kernel_image() {
  local image=$kernel_files/boot/vmlinuz-$release
  [[ -e "$image" ]] || image=$kernel_files/lib/modules/$release/vmlinuz
  printf '%s' "$image"
}

# Emulated, a processor would take seconds over decompressing the kernel. Where the payload is stands in the header of the image, at the
# offsets that the kernel's Documentation/arch/x86/boot.rst gives.
unpack_kernel_image() {
  local image=$1 unpacked=$2 sectors offset length magic
  number_at() { od -An -t "u$2" -j "$1" -N "$2" "$image" | tr -d ' '; } # OFFSET BYTES
  sectors=$(number_at 497 1)
  offset=$(number_at 584 4)
  length=$(number_at 588 4)
  offset=$(((sectors + 1) * 512 + offset))
  magic=$(od -An -t x1 -j "$offset" -N 4 "$image" | tr -d ' ')
  local decompress
  case "$magic" in
    28b52ffd) decompress=(zstd -dc) ;;
    fd377a58) decompress=(xz -dc --single-stream) ;;
    1f8b*) decompress=(gzip -dc) ;;
    *) fail "$image is compressed in a way that is not known here ($magic)" ;;
  esac
  # The payload ends with the length of what it unpacks to, of which the programs complain.
  tail -c "+$((offset + 1))" "$image" | head -c "$length" | "${decompress[@]}" >"$unpacked.new" 2>/dev/null || true
  if [[ "$(od -An -t x1 -N 4 "$unpacked.new" | tr -d ' ')" != 7f454c46 ||
    "$(stat -c %s "$unpacked.new")" != "$(number_at $((offset + length - 4)) 4)" ]]; then
    fail "the kernel in $image could not be unpacked with ${decompress[0]}"
  fi
  mv "$unpacked.new" "$unpacked"
}

# build_module FOLDER: makes the kernel module that it contains, and leaves it in $products.
build_module() {
  local source=$1 name built_from
  name=$(basename "$source")
  built_from=$(fingerprint "$source"/*)
  if [[ "$(cat "$products/$name.built-from" 2>/dev/null)" == "$built_from" ]]; then
    return
  fi
  local work headers=$kernel_files/usr/src/linux-headers-$release
  work=$(mktemp -d -p "$scratch")
  cp "$source"/* "$work/"
  # The headers take it for granted that they lie in /usr/src.
  sed -i -E "s#(^|[^.[:alnum:]_-])(/[^ ]*)?/usr/src/linux#\1$kernel_files/usr/src/linux#g" "$headers/Makefile"
  make_module -s -C "$headers" M="$work" CONFIG_DEBUG_INFO_BTF_MODULES= modules >&2
  strip --strip-debug -o "$products/$name.ko" "$work/$name.ko"
  echo "$built_from" >"$products/$name.built-from"
  rm -r "$work"
}

# make, as the headers want it: their programs and flags are those of the release they were built in.
make_module() {
  if [[ "$(own_release)" == "$compiler_release" ]]; then
    make "$@"
    return
  fi
  local tree=$cache/compilers/$compiler_release
  if [[ ! -e "$tree/complete" ]]; then
    fetch_compiler "$tree"
  fi
  # shellcheck disable=SC2016
  tree=$tree cache=$cache files=$kernel_files unshare --mount bash -ec '
    mkdir -p "$tree$cache" "$tree$files"
    mount --bind "$cache" "$tree$cache"
    [[ "$files" == "$cache"/* ]] || mount --bind "$files" "$tree$files"
    mount -t proc proc "$tree/proc"
    mount --bind /dev "$tree/dev"
    exec chroot "$tree" /usr/bin/env -i PATH=/usr/bin:/usr/sbin make "$@"' make "$@"
}

fetch_compiler() {
  local tree=$1 names libelf
  read_lists "$compiler_release"
  libelf=$(in_suite "$compiler_release" apt-cache pkgnames libelf1 | sort | tail -n 1) # libelf1t64 since Debian 13
  rm -rf "$tree"
  merged_tree "$tree"
  mkdir -p "$tree"/{proc,dev,tmp}
  names=$(closure "$compiler_release" gcc make dash bash coreutils sed grep findutils mawk perl-base "$libelf" libc6-dev)
  mapfile -t names <<<"$names"
  unpack "$compiler_release" "$tree" "${names[@]}"
  ln -sfn dash "$tree/usr/bin/sh"
  ln -sfn mawk "$tree/usr/bin/awk"
  touch "$tree/complete"
}
