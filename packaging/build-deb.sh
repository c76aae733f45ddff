#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# packaging/build-deb.sh [DIRECTORY [OPTION...]]
#
# Builds weft's Debian packages, source and binary, in the directory, or in
# build/deb, with options of dpkg-buildpackage.  `apt-get build-dep ./packaging`
# installs what they are built with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out="$(realpath -m "${1:-build/deb}")"
shift $(($# > 0))

version="$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)"
version="${version%-*}"
grep -qxF "  version: '$version'," meson.build || {
	echo "packaging/debian/changelog is not of meson.build's version" >&2
	exit 1
}

# The sources as they are here, without what was built from them.
tree="$out/weft-$version"
rm -rf "$tree"
mkdir -p "$tree"
tar -c --anchored --exclude-vcs --exclude=./build --exclude='./build-*' \
	--exclude=./.cache --exclude="./${out#"$PWD"/}" \
	--no-anchored --exclude=__pycache__ . |
	tar -x -C "$tree"
tar -c --xz -C "$out" --sort=name --owner=0 --group=0 --numeric-owner \
	-f "$out/weft_$version.orig.tar.xz" "weft-$version"
cp -R "$tree/packaging/debian" "$tree/debian"
cd "$tree"
exec dpkg-buildpackage --no-sign "$@"
