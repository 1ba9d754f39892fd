#!/usr/bin/env bash
# Builds the archives of a release, and their checksums, in dist: for each platform a .tar.gz with the static program,
# the documents, scripts/setup-postgres.sh and the systemd unit.
#
#   scripts/release.sh [GOOS/GOARCH…]     linux and darwin, amd64 and arm64, if none is named
#
# Only a commit is released: changes that are not committed end the script. The tag of the commit, such as v1.2.3, is
# the version that the program prints, and stands in the names of the archives; without a tag the commit does. The same
# commit, built by the same version of Go, GNU tar and gzip, gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC
umask 022

platforms=("$@")
[ $# -gt 0 ] || platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64)

die() {
  echo "release: $*" >&2
  exit 1
}

tar=$(command -v gtar || command -v tar)
"$tar" --version | grep -q GNU || die 'GNU tar is needed: on macOS, brew install gnu-tar'
[ -z "$(git status --porcelain)" ] || die 'commit your changes first: a release is built from a commit'

# The newest of the tags that Go, too, takes for a version.
version=$(git tag --points-at HEAD --sort=-version:refname | grep -E '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$' |
  head -n 1 || true)
[ -n "$version" ] || {
  version=$(git rev-parse --short=12 HEAD)
  echo "release: the commit has no tag such as v1.2.3: its archives are named $version" >&2
}
committed=$(git log -1 --format=%ct)

out=dist
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() { # GOOS GOARCH: the program
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 GOAMD64=v1 GOARM64=v8.0 GOFLAGS='' \
    go build -trimpath -tags=grpcnotrace -buildvcs=true -ldflags='-s -w -buildid=' -o "$3" ./cmd/loci
  [[ $version != v* ]] || go version -m "$3" | awk -v want="$version" '$1 == "mod" { got = $3 } END { exit got != want }' ||
    die "the program does not know its version, $version: is this a whole clone, with its tags?"
}

pack() { # GOOS GOARCH: the archive
  local name="loci-$version-$1-$2"
  local dir="$work/$name"
  mkdir -p "$dir/docs/monitoring"
  build "$1" "$2" "$dir/loci"
  cp LICENSE NOTICE README.md CHANGELOG.md "$dir"
  cp scripts/setup-postgres.sh "$dir"
  cp -r packaging "$dir"
  cp docs/*.md "$dir/docs"
  cp docs/monitoring/* "$dir/docs/monitoring"
  find "$dir" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
  chmod 755 "$dir/loci" "$dir/setup-postgres.sh"
  "$tar" -C "$work" --sort=name --format=ustar --mtime="@$committed" --owner=0 --group=0 --numeric-owner -cf - "$name" |
    gzip -9n >"$out/$name.tar.gz"
  rm -rf "$dir"
}

for platform in "${platforms[@]}"; do
  [[ $platform == */* ]] || die "$platform is no platform such as linux/amd64"
  echo "release: $version for $platform" >&2
  pack "${platform%/*}" "${platform#*/}"
done

cd "$out"
if command -v sha256sum >/dev/null; then sha256sum -- *.tar.gz; else shasum -a 256 -- *.tar.gz; fi >SHA256SUMS
cat SHA256SUMS
