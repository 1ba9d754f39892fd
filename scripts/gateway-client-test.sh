#!/usr/bin/env bash
# Drives the gateway of bin/loci with published packages of providers and frameworks, in Python and JavaScript:
# tests/gateway-clients. Arguments name programs, all of which run without.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup-node.sh
cd tests/gateway-clients
python=${PYTHON:-python3}
usable() { "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }
if ! usable && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get -q update >&2 && DEBIAN_FRONTEND=noninteractive apt-get -q install -y python3-venv >&2
fi
usable || {
  echo 'gateway-client-test: it needs Python 3.10 or newer with venv (Debian: apt-get install python3-venv)' >&2
  exit 1
}
# The packages are installed again when their lists change.
lock=$(cksum <package-lock.json)
if [ "$(cat node_modules/.installed 2>/dev/null)" != "$lock" ]; then
  npm ci --no-audit --no-fund >&2 || {
    echo 'gateway-client-test: the packages of package-lock.json cannot be installed: npm needs its registry, or a' \
      'cache that has them' >&2
    exit 1
  }
  printf '%s\n' "$lock" >node_modules/.installed
fi
lock=$(cksum <requirements.txt)
if [ "$(cat .venv-1/.installed 2>/dev/null)" != "$lock" ]; then
  "$python" -m venv --clear .venv-1
  .venv-1/bin/pip install --quiet --disable-pip-version-check -r requirements.txt >&2 || {
    echo 'gateway-client-test: the packages of requirements.txt cannot be installed: pip needs its index, or a cache' \
      'that has them' >&2
    exit 1
  }
  printf '%s\n' "$lock" >.venv-1/.installed
fi
PYTHONDONTWRITEBYTECODE=1 .venv-1/bin/python run.py "$@"
