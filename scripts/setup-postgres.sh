#!/usr/bin/env bash
# Finds Postgres 15 or newer with pgvector 0.8 or newer, or installs it, and prints its bin directory on stdout.
#
# Looked for in LOCI_POSTGRES_BIN, PATH and the directories where packages put it. Installed with apt on Debian and
# Ubuntu (pgvector from source where the release has no package of it) and with Homebrew on macOS. What it does is told
# on stderr. A second run changes nothing.
set -euo pipefail

min_postgres=15
min_pgvector=0.8

say() { printf '%s\n' "$*" >&2; }
die() {
  say "setup-postgres: $*"
  exit 1
}
by_hand="install Postgres $min_postgres or newer with pgvector $min_pgvector or newer yourself and set LOCI_POSTGRES_BIN \
to its bin directory, or run Loci in containers, as docs/install.md says"

# at_least VERSION MINIMUM compares dotted numbers.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# postgres_major BIN prints the major version of the server in BIN; nothing if there is none.
postgres_major() {
  [ -x "$1/postgres" ] && [ -x "$1/initdb" ] || return 0
  "$1/postgres" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p'
}

# pgvector_version BIN prints the version of the pgvector that the server in BIN can load; nothing if there is none.
pgvector_version() {
  local share
  [ -x "$1/pg_config" ] || return 0
  share=$("$1/pg_config" --sharedir)
  sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" "$share/extension/vector.control" 2>/dev/null || true
}

# bins lists the directories that may hold a server, the preferred first.
bins() {
  if [ -n "${LOCI_POSTGRES_BIN:-}" ]; then
    printf '%s\n' "$LOCI_POSTGRES_BIN"
    return
  fi
  local path
  path=$(command -v postgres || true)
  [ -z "$path" ] || dirname "$path"
  printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin \
    /usr/local/opt/postgresql@*/bin /usr/local/pgsql/bin | sort -rV
}

# usable prints the first directory whose server has pgvector.
usable() {
  local bin major
  while read -r bin; do
    major=$(postgres_major "$bin")
    if [ "${major:-0}" -ge "$min_postgres" ] && at_least "$(pgvector_version "$bin")" "$min_pgvector"; then
      printf '%s\n' "$bin"
      return
    fi
  done < <(bins)
}

# without_pgvector prints the major version of the newest server packaged by Debian that lacks only pgvector.
without_pgvector() {
  local bin major
  while read -r bin; do
    [[ $bin == /usr/lib/postgresql/* ]] || continue
    major=$(postgres_major "$bin")
    if [ "${major:-0}" -ge "$min_postgres" ]; then
      printf '%s\n' "$major"
      return
    fi
  done < <(bins)
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# What apt installs is told on stderr, and never asks. LC_ALL keeps its words the ones read here.
apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 install -y -q --no-install-recommends "$@" >&2
}
apt_update() {
  say "setup-postgres: updating the package lists"
  as_root apt-get -o DPkg::Lock::Timeout=300 update -q >&2
}
candidate() { LC_ALL=C apt-cache policy "$1" | sed -n 's/^  Candidate: //p' | grep -vx '(none)' || true; }

# install_server MAJOR installs the server, and keeps Debian from creating and starting a cluster nobody asked for.
install_server() {
  local config=/etc/postgresql-common/createcluster.d/loci.conf
  apt_install postgresql-common
  as_root mkdir -p "${config%/*}"
  printf 'create_main_cluster = false\n' | as_root tee "$config" >/dev/null
  local status=0
  apt_install "postgresql-$1" || status=$?
  as_root rm -f "$config"
  return "$status"
}

# install_headers MAJOR installs what extensions are built with, in the installed server's own version if apt still
# has it, so that a running server is not upgraded on the way.
install_headers() {
  local version
  version=$(dpkg-query -W -f '${Version}' "postgresql-$1")
  apt_install --no-upgrade make gcc libc6-dev dpkg-dev &&
    { apt_install "postgresql-server-dev-$1=$version" || apt_install "postgresql-server-dev-$1"; }
}

# newer_release prints the first release of this distribution that has pgvector 0.8 and stays on its mirrors.
newer_release() {
  case "$1" in
    debian) echo trixie ;;
    ubuntu) echo resolute ;;
  esac
}

# own_mirror CODENAME prints the mirror this machine takes its own release from.
own_mirror() {
  LC_ALL=C apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
    awk -v codename="$1" '$2 == codename && ($3 == "Debian" || $3 == "Ubuntu") { print $1; exit }'
}

# fetch_source MIRROR RELEASE DIRECTORY unpacks pgvector's source package from a newer release of the distribution into
# DIRECTORY/source. Its package lists live in DIRECTORY, so the machine's own are as before; signatures are checked.
fetch_source() {
  local component=main dir=$3 options
  [ "$ID" = ubuntu ] && component=universe
  mkdir -p "$dir/lists/partial"
  printf 'deb-src [signed-by=%s] %s %s %s\n' "/usr/share/keyrings/$ID-archive-keyring.gpg" "$1" "$2" "$component" \
    >"$dir/sources.list"
  options=(-q -o "Dir::Etc::sourcelist=$dir/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$dir/lists" -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=")
  (cd "$dir" && apt-get "${options[@]}" -o APT::Sandbox::User= update >&2 &&
    apt-get "${options[@]}" source --download-only pgvector >&2 &&
    dpkg-source --no-check -x pgvector_*.dsc source >&2)
}

# build_pgvector MAJOR builds the extension for any processor of this kind and installs it beside the server.
build_pgvector() {
  local release mirror build config=/usr/lib/postgresql/$1/bin/pg_config
  release=$(newer_release "$ID")
  mirror=$(own_mirror "$VERSION_CODENAME")
  [ -n "$release" ] && [ -n "$mirror" ] || die "no source of pgvector for $PRETTY_NAME is known: $by_hand"
  say "setup-postgres: building the pgvector of $release for Postgres $1"
  build=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory of now
  trap "rm -rf '$build'" EXIT
  fetch_source "$mirror" "$release" "$build" || die "the source of pgvector could not be fetched: $by_hand"
  # LLVM bitcode only serves just-in-time compilation, which Loci turns off.
  make -s -C "$build/source" OPTFLAGS="" with_llvm=no PG_CONFIG="$config" >&2
  as_root make -s -C "$build/source" OPTFLAGS="" with_llvm=no PG_CONFIG="$config" install >&2
}

install_with_apt() {
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
    die "installing Postgres and pgvector needs root: run this as root or with sudo, or $by_hand"
  local major version
  major=$(without_pgvector)
  [ -n "$(candidate "postgresql-${major:-common}")" ] || apt_update
  if [ -z "$major" ]; then
    major=$(LC_ALL=C apt-cache depends postgresql | sed -n 's/^ *Depends: postgresql-\([0-9]*\)$/\1/p')
    [ "${major:-0}" -ge "$min_postgres" ] || die "$PRETTY_NAME has Postgres ${major:-(none)}, which is too old: $by_hand"
    install_server "$major" || { apt_update && install_server "$major"; }
  fi
  [ -z "$(usable)" ] || return 0
  version=$(candidate "postgresql-$major-pgvector")
  if [ -n "$version" ] && dpkg --compare-versions "$version" ge "$min_pgvector"; then
    apt_install "postgresql-$major-pgvector" || { apt_update && apt_install "postgresql-$major-pgvector"; }
  else
    install_headers "$major" || { apt_update && install_headers "$major"; }
    build_pgvector "$major"
  fi
}

install_with_homebrew() {
  command -v brew >/dev/null || die "Homebrew is not installed: $by_hand"
  brew install postgresql@17 pgvector >&2
}

install_what_lacks() {
  [ -z "${LOCI_POSTGRES_BIN:-}" ] ||
    die "LOCI_POSTGRES_BIN is $LOCI_POSTGRES_BIN, where no Postgres $min_postgres or newer with pgvector $min_pgvector \
or newer is: correct it, or unset it to have one found or installed"
  case "$(uname -s)" in
    Darwin) install_with_homebrew ;;
    Linux)
      command -v apt-get >/dev/null || die "this system is not one with apt: $by_hand"
      # shellcheck source=/dev/null
      . /etc/os-release
      install_with_apt
      ;;
    *) die "this system is not known here: $by_hand" ;;
  esac
}

bin=$(usable)
if [ -z "$bin" ]; then
  install_what_lacks
  bin=$(usable)
  [ -n "$bin" ] || die "what was installed is not Postgres $min_postgres or newer with pgvector $min_pgvector or newer: $by_hand"
fi
say "setup-postgres: Postgres $(postgres_major "$bin") with pgvector $(pgvector_version "$bin") in $bin"
printf '%s\n' "$bin"
