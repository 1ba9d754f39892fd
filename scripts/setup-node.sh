#!/usr/bin/env bash
# Finds Node.js 18 or newer with npm, or installs them with apt (Debian, Ubuntu) or Homebrew (macOS). It reports on stderr
# what it does. A second run changes nothing.
set -euo pipefail

min_node=18

say() { printf 'setup-node: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}

# node_major prints the major version of the node in PATH; 0 if there is none.
node_major() { node --version 2>/dev/null | sed -n 's/^v\([0-9]*\).*/\1/p' | grep . || echo 0; }
usable() { [ "$(node_major)" -ge "$min_node" ] && command -v npm >/dev/null; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q "$@" >&2; }

install_what_lacks() {
  case "$(uname -s)" in
    Darwin)
      command -v brew >/dev/null || return 1
      brew install node >&2
      ;;
    Linux)
      command -v apt-get >/dev/null || return 1
      [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || return 1
      apt_get update && apt_get install -y --no-install-recommends nodejs npm
      ;;
    *) return 1 ;;
  esac
}

usable || { say "installing Node.js and npm" && install_what_lacks; } || true
usable || die "Node.js $min_node or newer with npm is not here and could not be installed: install them yourself, \
then run this again"
say "Node.js $(node --version) with npm $(npm --version 2>/dev/null)"
