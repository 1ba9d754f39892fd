#!/usr/bin/env bash
# Drives bin/loci with the published clients of Letta, OpenAI and Anthropic: tests/letta-client.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup-node.sh
cd tests/letta-client
# The packages are those of package-lock.json; they are installed again when it changes.
lock=$(cksum <package-lock.json)
if [ "$(cat node_modules/.installed 2>/dev/null)" != "$lock" ]; then
  npm ci --no-audit --no-fund >&2 || {
    echo 'client-test: the packages of tests/letta-client/package-lock.json cannot be installed: npm needs its' \
      'registry, or a cache that has them' >&2
    exit 1
  }
  printf '%s\n' "$lock" >node_modules/.installed
fi
node_modules/.bin/tsc -p .
exec node --test "$@" build/main.test.js
