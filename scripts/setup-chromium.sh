#!/usr/bin/env bash
# Finds Chromium for the test of the console, or installs it with apt (Debian, Ubuntu) as root. Where it cannot, it says so,
# and the test is skipped. A second run changes nothing.
set -euo pipefail

say() { printf 'setup-chromium: %s\n' "$*" >&2; }

for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null; then
    exit 0
  fi
done
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  say 'no Chromium is here and only root with apt-get can install it: the test of the console is skipped'
  exit 0
fi
say 'installing chromium'
apt_get() { env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q "$@" >&2; }
{ apt_get update && apt_get install -y --no-install-recommends chromium; } ||
  say 'chromium cannot be installed: the test of the console is skipped'
