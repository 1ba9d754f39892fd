#!/usr/bin/env bash
# Drives bin/loci with the published Python clients of Letta, of both generations: tests/letta-client-python. Arguments
# name flows, all of which run without.
set -euo pipefail
cd "$(dirname "$0")/../tests/letta-client-python"

python=${PYTHON:-python3}
"$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || {
  echo 'python-client-test: it needs Python 3.9 or newer with venv (Debian: apt-get install python3-venv)' >&2
  exit 1
}
# Each client has an environment of its own; its packages are installed again when its requirements change.
for generation in 1 0; do
  environment=.venv-$generation
  lock=$(cksum <"requirements-$generation.txt")
  if [ "$(cat "$environment/.installed" 2>/dev/null)" != "$lock" ]; then
    "$python" -m venv --clear "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check -r "requirements-$generation.txt" >&2 || {
      echo "python-client-test: the packages of requirements-$generation.txt cannot be installed: pip needs its" \
        'index, or a cache that has them' >&2
      exit 1
    }
    printf '%s\n' "$lock" >"$environment/.installed"
  fi
  PYTHONDONTWRITEBYTECODE=1 "$environment/bin/python" run.py "$@"
done
