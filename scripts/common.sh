# shellcheck shell=bash disable=SC2034
# Sourced by quickstart, check and lint: packages, the build, words on the screen.
# Leaves the caller in the root of the source tree.

cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." || exit 1
root=$PWD
build=$root/build
install=$build/install
jobs=$(nproc)

# CI runs as root, without a terminal, sometimes without HOME: Open MPI wants to be told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HOME=${HOME:-$build} LC_ALL=C.UTF-8
exec </dev/null

build_packages="g++ make autoconf automake libtool pkgconf libhwloc-dev libibverbs-dev libucx-dev libopenmpi-dev
  openmpi-bin libcli11-dev libfmt-dev python3"

say() { printf '==> %s\n' "$*"; }
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# no_options WHAT-IT-DOES ARGUMENT...: ends the script unless there is no argument.
no_options() {
  local about=$1
  shift
  [[ $# -eq 0 ]] && return
  echo "Usage: scripts/${0##*/}   (no options; $about)"
  [[ $* == --help ]] || die "no option is known but --help: $*"
  exit 0
}

# install_packages NAME...: those that are missing, by apt-get.
install_packages() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed* ]] ||
      missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return
  command -v apt-get >/dev/null ||
    die "this needs Debian 12's packages, or their like installed by hand: ${missing[*]}"
  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
      die "packages are missing and there is no sudo. As root: apt-get install --no-install-recommends ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o Acquire::Retries=3
    -o Dpkg::Use-Pty=0)
  "${apt[@]}" update || die "apt-get update failed (see above)"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
    die "apt-get install failed (see above)"
}

# run_logged LOG COMMAND...: quietly; the end of the log when it fails.
run_logged() {
  local log=$1
  shift
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    die "failed: $* (the whole log is $log)"
  }
}

# configure_tree DIR ARGUMENT...: makes DIR ready for make. Makefiles refresh themselves later; what was
# configured before the last package was installed may have been configured without it.
configure_tree() {
  local dir=$1
  shift
  if [[ ! -e configure || ! -e Makefile.in || ! -e config/ltmain.sh ]]; then
    say "making configure"
    run_logged "$build/autogen.log" ./autogen.sh
  fi
  [[ -e $dir/Makefile && $dir/config.status -nt /var/lib/dpkg/status ]] && return
  say "configuring ${dir#"$root"/}"
  mkdir -p "$dir"
  local wrap=
  command -v ccache >/dev/null && wrap='ccache '
  (cd "$dir" && run_logged "$dir/configure.log" "$root/configure" CC="${wrap}gcc" CXX="${wrap}g++" "$@") || exit 1
}

# build_and_install: build/ and the install tree build/install.
build_and_install() {
  configure_tree "$build" --prefix="$install"
  say "building in build/ with $jobs jobs"
  make -C "$build" --no-print-directory -j"$jobs" all || die "the build failed (see above)"
  say "installing to build/install"
  run_logged "$build/install.log" make -C "$build" --no-print-directory install
}
