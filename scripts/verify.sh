#!/usr/bin/env bash
# Runs the parts of `make verify-all` that have not passed yet on the present state of the files, and notes those that
# pass in .verify, so that a run that was cut off goes on where it stopped. Arguments name the parts to run, all of which
# run, passed or not.
set -euo pipefail
cd "$(dirname "$0")/.."

parts='race long chaos-servers chaos-agents chaos-handovers fuzz arm64 clients browser release'

# The state of the files: what is committed, what is changed, and what is new.
state=$({ git rev-parse HEAD; git diff HEAD; git ls-files -o --exclude-standard | while IFS= read -r file; do
  cksum "$file"
done; } | cksum | tr ' ' '-')
passed=.verify/$state
mkdir -p "$passed"
for other in .verify/*; do
  [ "$other" = "$passed" ] || rm -rf "$other"
done

for part in ${*:-$parts}; do
  if [ $# = 0 ] && [ -e "$passed/$part" ]; then
    echo "== verify-$part has passed"
    continue
  fi
  started=$SECONDS
  ${MAKE:-make} --no-print-directory "verify-$part" || {
    echo "== verify-$part failed after $((SECONDS - started)) s" >&2
    exit 1
  }
  echo "== verify-$part: $((SECONDS - started)) s"
  touch "$passed/$part"
done
