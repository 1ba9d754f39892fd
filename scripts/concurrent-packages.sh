#!/usr/bin/env bash
# Prints the packages whose product code starts goroutines: the race detector looks at their tests.
set -euo pipefail
cd "$(dirname "$0")/.."

starts='^[[:space:]]*go [a-z(]|[.]Go[(]'
grep -rlE --include='*.go' --exclude='*_test.go' "$starts" . | grep -vE 'test/|^[.]/(bench|tools)/' | xargs -n1 dirname | sort -u
