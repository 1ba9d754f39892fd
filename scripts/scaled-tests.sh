#!/usr/bin/env bash
# Prints a pattern of the names of all tests whose length depends on LOCI_TEST_SCALE: those that use it, all of a file
# that uses it elsewhere than in a test, and all of a package whose TestMain does. With "packages", prints the packages
# instead.
set -euo pipefail
cd "$(dirname "$0")/.."

uses='LOCI_TEST_SCALE|scale[.](Of|Pure|Long)[(]'
files=$(grep -rlE --include='*_test.go' "$uses" .)
if [ "${1:-}" = packages ]; then
  xargs -n1 dirname <<<"$files" | sort -u
  exit
fi
names=$(for file in $files; do
  awk -v uses="$uses" '
    /^func / { test = match($0, /^func Test[A-Za-z0-9_]+[(]/) ? substr($0, 6, RLENGTH - 6) : "" }
    /^func / && test != "" && test != "TestMain" { tests = tests test "\n" }
    $0 ~ uses && test == "TestMain" { whole = "package" }
    $0 ~ uses && test == "" && whole == "" { whole = "file" }
    $0 ~ uses && test != "TestMain" && test != "" { print test }
    /^}/ { test = "" }
    END { if (whole == "file") printf "%s", tests; if (whole == "package") print "package" }
  ' "$file" | while read -r name; do
    if [ "$name" = package ]; then
      cat "${file%/*}"/*_test.go | grep -oE '^func Test[A-Za-z0-9_]+' | sed 's/^func //' | grep -vx TestMain
    else
      echo "$name"
    fi
  done
done | sort -u | paste -sd'|')
echo "^($names)\$"
