#!/usr/bin/env bash
# Finds qemu for programs of arm64, or installs it with apt (Debian, Ubuntu) as root, and prints its name; nothing on a
# machine of arm64, which needs none. A second run changes nothing.
set -euo pipefail

[ "$(uname -m)" != aarch64 ] || exit 0
command -v qemu-aarch64-static && exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo 'setup-qemu: no qemu-aarch64-static is here, and only root with apt-get can install it' >&2
  exit 1
fi
echo 'setup-qemu: installing qemu-user-static' >&2
apt_get() { env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q "$@" >&2; }
apt_get update
apt_get install -y --no-install-recommends qemu-user-static
command -v qemu-aarch64-static
