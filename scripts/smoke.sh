#!/usr/bin/env bash
# Takes the built program through the walk in the README, on a private Postgres in a directory of its own, and checks what it answers.
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

LOCI_HOME=$work/home LOCI_ADDR=127.0.0.1:0 bin/loci serve --demo >"$work/out" 2>"$work/log" &
server=$!
for _ in $(seq 600); do
  grep -q ' serves ' "$work/out" && break
  kill -0 "$server" || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done
base=$(sed -n 's/.* serves \(http.*\)/\1/p' "$work/out")
echo "smoke: $base"

# The walk's own commands, at this server's address.
sed -n '/<!-- walk -->/,/<!-- \/walk -->/p' README.md | sed -n '/^```sh$/,/^```$/p' | grep -v '^```' |
  sed "s|^LOCI=.*|LOCI=$base|" >"$work/walk.sh"
(cd "$work" && bash -euo pipefail walk.sh) >"$work/answers"

failed=0
expect() {
  if grep -qF -- "$1" "$work/answers"; then
    echo "smoke: found: $1"
  else
    echo "smoke: missing: $1" >&2
    failed=1
  fi
}
expect 'Delete the oldest backups first'
expect '9: Delete the oldest backups first, then add a disk. Never delete the write-ahead log by hand.'
expect '* Opened handbook/on-call.md (lines 3-6)'
expect '- current_files_open=1'
expect '5: The person on call answers within 15 minutes.'
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
kill -TERM "$server"
wait "$server" || { echo "smoke: the server ended with $?" >&2; failed=1; }
server=
[ "$failed" = 0 ] || { cat "$work/answers" "$work/log" >&2; exit 1; }
echo 'smoke: passed'
