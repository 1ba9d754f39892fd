#!/usr/bin/env bash
# Prints a pattern of the names of all tests whose length depends on LOCI_TEST_SCALE: those of the files that use it,
# and of the whole package if its TestMain does. With "packages", prints the packages instead.
set -euo pipefail
cd "$(dirname "$0")/.."

files=$(grep -rlE --include='*_test.go' 'LOCI_TEST_SCALE|scale\.(Of|Pure)\(' .)
if [ "${1:-}" = packages ]; then
  xargs -n1 dirname <<<"$files" | sort -u
  exit
fi
all=$(for file in $files; do
  if grep -q '^func TestMain(' "$file"; then ls "${file%/*}"/*_test.go; else echo "$file"; fi
done)
names=$(xargs grep -hoE '^func Test[A-Za-z0-9_]+' <<<"$all" | sed 's/^func //' | grep -vx TestMain | sort -u | paste -sd'|')
echo "^($names)\$"
