#!/usr/bin/env bash
# Installs the manual of PostgreSQL, about which a test asks questions, with apt (Debian) as root. Where it cannot, the test
# goes without it. A second run changes nothing.
set -euo pipefail

[ ! -d /usr/share/doc/postgresql-doc-15/html ] || exit 0
apt_get() { env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q "$@" >&2; }
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ] ||
  ! { apt_get update && apt_get install -y --no-install-recommends postgresql-doc-15; }; then
  echo 'setup-manual: the manual of PostgreSQL cannot be installed: a test goes without it' >&2
fi
