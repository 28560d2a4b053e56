#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# cjson.sh CC LIBRARY: makes libcjson.a, which Debian's libcjson-dev leaves out,
# from the source package of the libcjson-dev that is installed. apt fetches and
# verifies it, with a private state: the system's lists and sources stay as they are.
set -euo pipefail
cc=$1 library=$2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
fail() {
	tail -n 5 "$log" >&2
	echo "cjson.sh: no libcjson.a: $1. Another one will do, copied to $library" >&2
	exit 1
}

version=$(dpkg-query -W -f '${source:Version}' libcjson-dev 2> "$log") || fail "libcjson-dev is not installed as a Debian package"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
# shellcheck disable=SC2016 # apt's own names
apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' \
	'Created-By: Packages' 'Origin: Debian' 'Component: main' 2>> "$log" | sort -u > "$work/sources" || true
# package lists that were never fetched have no origin
[[ -s $work/sources ]] || fail "apt has no lists of Debian's packages; apt-get update fetches them"
apt=(apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 -o Dir::State::lists="$work/lists"
	-o Dir::Cache="$work/cache" -o Dir::Etc::sourcelist="$work/sources" -o Dir::Etc::sourceparts=-)
"${apt[@]}" update >> "$log" 2>&1 < /dev/null || true
(cd "$work" && "${apt[@]}" source --download-only "cjson=$version") >> "$log" 2>&1 < /dev/null ||
	fail "the source package cjson $version could not be fetched"
# apt has verified it by the checksums in signed lists
dpkg-source --no-check -x "$work"/*.dsc "$work/src" >> "$log" 2>&1 || fail "the source package cjson $version could not be unpacked"
"$cc" -O2 -g -fPIC -c "$work/src/cJSON.c" -o "$work/cJSON.o"
mkdir -p "${library%/*}"
rm -f "$library"
ar rcs "$library" "$work/cJSON.o"
