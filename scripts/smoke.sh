#!/usr/bin/env bash
# Takes the built program through the walks of README.md and docs/walkthrough.md, on a private Postgres in a directory of
# its own, and checks the answers: each walk twice without a key, and the long one once more with one.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
chmod 711 "$work" # as root, Postgres runs as another user
server=
finish() {
  if [ -n "$server" ]; then
    kill -TERM "$server" 2>/dev/null && wait "$server" || true
  fi
  rm -rf "$work"
}
trap finish EXIT

start() { # more environment
  env LOCI_HOME="$work/home" LOCI_ADDR=127.0.0.1:0 "$@" bin/loci serve --demo >"$work/out" 2>"$work/log" &
  server=$!
  for _ in $(seq 600); do
    grep -q ' serves ' "$work/out" && break
    kill -0 "$server" || { cat "$work/log" >&2; exit 1; }
    sleep 0.1
  done
  base=$(sed -n 's/.* serves \(http.*\)/\1/p' "$work/out")
  echo "smoke: $base"
}

stop() {
  kill -TERM "$server"
  wait "$server" || { echo "smoke: the server ended with $?" >&2; failed=1; }
  server=
}

walk() { # document, more environment: runs its commands in an empty directory and keeps the answers
  sed -n '/<!-- walk -->/,/<!-- \/walk -->/p' "$1" | sed -n '/^```sh$/,/^```$/p' | grep -v '^```' >"$work/walk.sh"
  rm -rf "$work/here" && mkdir "$work/here"
  (cd "$work/here" && env LOCI="$base" "${@:2}" bash -euo pipefail "$work/walk.sh") >"$work/answers" ||
    { echo "smoke: the walk of $1 ends with $?" >&2; cat "$work/answers" "$work/log" >&2; exit 1; }
}

failed=0
expect() {
  if grep -qF -- "$1" "$work/answers"; then
    echo "smoke: found: $1"
  else
    echo "smoke: missing: $1" >&2
    failed=1
  fi
}
expect_files() {
  expect 'Delete the oldest backups first'
  expect 'Delete the oldest backups first, then add a disk. Never delete the write-ahead log by hand.'
  expect '/on-call.md (lines 3-6)'
  expect 'The person on call answers within 15 minutes.'
  expect '- current_files_open=1'
}

expect_all() {
  expect_files
  expect '9: Delete the oldest backups first'
  expect 'In the cabinet behind the lift, second shelf.'
  expect 'And the cables?'
  expect '18519 18520'
  expect 'You are loud.'
  expect '"value":"You are calm."'
  expect 'The escrow code of the safe is kept by Grace.'
  expect '<memory_blocks>'
  expect '"sha256"'
  expect '"how":"extracted"'
  expect 'user Ada: Where did we put the spare disks?'
}

start
for _ in once again; do
  walk README.md
  expect "Found 1 passage in 1 file for query: 'no space left on the device'" # by meaning: it shares no word
  expect_files
  walk docs/walkthrough.md
  expect_all
done

# The three lines that `make run` prints.
sed -n 's/^  //p' "$work/out" >"$work/greeting.sh"
bash -euo pipefail "$work/greeting.sh" >"$work/answers"
expect 'guide/searching.md'
expect 'uploading.md'

# A PDF, read by the program itself in a child.
bin/loci upload --addr "$base" papers files/document/testdata/pdf/chromium.pdf
folder=$(curl -s "$base/v1/folders/?name=papers" | grep -o 'source-[0-9a-f-]*' | head -1)
curl -s "$base/v1/folders/$folder/files" >"$work/answers"
expect '"total_pages":3'

bin/loci health --addr "$base"
stop

key=smoke-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
start LOCI_API_KEY="$key"
walk docs/walkthrough.md LOCI_API_KEY="$key"
expect_all
stop

[ "$failed" = 0 ] || { cat "$work/answers" "$work/log" >&2; exit 1; }
echo 'smoke: passed'
