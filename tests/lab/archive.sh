# Packages of any suite of the Debian archive, unpacked and never installed, without a trace in the machine's own apt. Sourced by `lab`, and by
# install-dependencies.sh for what it says of the archive.

# The Debian release of this machine.
own_release() { . /etc/os-release && echo "${VERSION_CODENAME:-}"; }

# The mirror that this machine's apt uses for Debian; empty where it has not read its lists.
known_mirror() {
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(ORIGIN)|$(RELEASE)|$(REPO_URI)' 'Created-By: Packages' |
    awk -F '|' '$1 == "Debian" && $2 !~ /-(security|updates)$/ {print $3; exit}'
}

# source_line SUITE: for a list of apt's sources, on the mirror that this machine uses.
source_line() {
  local suite=$1 found keyring=/usr/share/keyrings/debian-archive-keyring
  found=$(known_mirror)
  if [[ -z "$found" ]]; then
    apt-get -qq update >&2
    found=$(known_mirror)
  fi
  [[ -n "$found" ]] || fail "this machine's apt knows no Debian archive"
  [[ -e "$keyring.gpg" ]] && keyring+=.gpg || keyring+=.pgp
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$found" "$suite"
}

# in_suite SUITE PROGRAM ARGUMENT...: apt-get or apt-cache, for which nothing but that suite exists and nothing is installed.
in_suite() {
  local suite=$1 program=$2 own=$cache/apt/$1
  shift 2
  "$program" -qq -o Dir::Etc::sourcelist="$own/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::Lists="$own/lists" \
    -o Dir::State::status="$own/status" -o Dir::Cache::archives="$own/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@"
}

# Reads the lists of a suite, once in a call of `lab`.
declare -A read_suites=()
read_lists() {
  local suite=$1 own=$cache/apt/$1
  [[ -z "${read_suites[$suite]:-}" ]] || return 0
  mkdir -p "$own/lists/partial" "$own/archives/partial"
  : >"$own/status"
  source_line "$suite" >"$own/sources.list"
  in_suite "$suite" apt-get update >&2
  read_suites[$suite]=yes
}

# The packages that these ones need, themselves included, in a suite that needs no other.
closure() {
  local suite=$1
  shift
  in_suite "$suite" apt-get --yes --no-install-recommends --print-uris install "$@" | sed -nE "s/^'[^']+' ([^_]+)_.*/\1/p"
}

# unpack SUITE FOLDER PACKAGE...: downloads them and lays their files, but for documentation, into the folder.
unpack() {
  local suite=$1 folder=$2 downloads
  shift 2
  downloads=$(mktemp -d -p "$scratch")
  mkdir -p "$folder"
  (cd "$downloads" && in_suite "$suite" apt-get download "$@" >&2)
  say "$suite: $# packages, $(du -sm "$downloads" | cut -f1) MiB"
  local package
  for package in "$downloads"/*.deb; do
    dpkg --fsys-tarfile "$package" | tar -x -C "$folder" --keep-directory-symlink \
      --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' --exclude='./usr/share/info/*'
  done
  rm -r "$downloads"
}

# A tree whose /bin, /sbin and /lib are in /usr, as every Debian since 12 has it.
merged_tree() {
  local folder=$1 name
  for name in bin sbin lib lib64; do
    mkdir -p "$folder/usr/$name"
    ln -sfn "usr/$name" "$folder/$name"
  done
}
