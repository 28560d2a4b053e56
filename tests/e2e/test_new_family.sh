#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A family is a folder: one from outside the tree is built in, listed, recorded and
# read back, with its own report, finding and format, without a change to any file of
# the tree. Its files are the examples of docs/adding-*.md.
# test: timeout=300 parallel
set -euo pipefail
cd "${ROOT:-$(dirname "$0")/../..}"
tmp=${TMPDIR:-/tmp}/new-family.$$
family=tests/e2e/new_family
# shellcheck source=tests/lib/tap.sh
. "${ROOT:-.}/tests/lib/tap.sh"

mkdir -p "$tmp"
trap 'exec {in}>&- || true; rm -rf "$tmp"' EXIT
sonde=$(tests/e2e/families.sh 2> "$tmp/log") || {
	result 1 "sonde builds with a family from outside the tree" "$(cat "$tmp/log")"
	done_testing
}
result 0 "sonde builds with a family from outside the tree"

check "its events are listed" grep -q tiny_work <("$sonde" list events)
check "its probes are listed" grep -q 'libtiny.so' <("$sonde" list probes)
check "doctor has a row for it" grep -qE "^tiny +yes +with -t" <("$sonde" doctor)
if ((EUID != 0)); then
	skip "its calls are counted" "tracing needs root"
	done_testing
fi

cc -O2 -shared -fPIC $family/libtiny.c -o "$tmp/libtiny.so"
cc -O2 $family/caller.c -o "$tmp/caller" -L"$tmp" -ltiny -Wl,-rpath,"$tmp"
mkfifo "$tmp/in"
"$tmp/caller" 1000 < "$tmp/in" > "$tmp/out" &
exec {in}> "$tmp/in"
"$sonde" record -t tiny,proc -p $! -o "$tmp/trace" 2> "$tmp/log" &
record=$!
for _ in {1..600}; do
	! grep -q 'tracing into' "$tmp/log" || break
	sleep 0.1
done
echo go >&$in
for _ in {1..600}; do
	[[ ! -s $tmp/out ]] || break
	sleep 0.1
done
kill -INT $record
wait $record || cat "$tmp/log"
sum=$("$sonde" export "$tmp/trace" --to text | grep -c 'tiny_work.*bytes' || true)
check "its 1000 calls are in the trace ($sum)" [ "$sum" = 1000 ]
check "the summary repeats the finding of its report" grep -q '^caller .* asked libtiny for 100% of all bytes' <("$sonde" report "$tmp/trace")
check "its report counts them" grep -qE '^ *[0-9]+ .*caller .* 1,000 ' <("$sonde" report "$tmp/trace" tiny)
check "its format exports them" [ "$("$sonde" export "$tmp/trace" --to moments | grep -c ' tiny_work$')" = 1000 ]
check "its event of a tracepoint is recorded" [ "$("$sonde" export "$tmp/trace" --to text | grep -c ' tiny_fork ')" = 1 ]
done_testing
