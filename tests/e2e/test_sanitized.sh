#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A short live recording, its reports and its exports by the program built with
# ASan and UBSan ($SONDE_SAN): no error and no leak.
set -uo pipefail
sonde=${SONDE_SAN:?}
tmp=$(mktemp -d)
# shellcheck source=tests/lib/tap.sh
. "${ROOT:-.}/tests/lib/tap.sh"
pids=()
trap 'kill "${pids[@]}" 2> /dev/null; rm -rf "$tmp"' EXIT

has_error() { grep -qE 'AddressSanitizer|LeakSanitizer|runtime error:' "$1"; }

names() { "$sonde" list "$1" --format csv | sed '1,/^name/d' | cut -d, -f1; }

sanitized() { # NAME, EXIT STATUSES ALLOWED, COMMAND..
	local name=$1 allowed=$2 status=0
	shift 2
	"$@" > "$tmp/stdout" 2> "$tmp/stderr" || status=$?
	[[ " $allowed " == *" $status "* ]] && ! has_error "$tmp/stderr"
	result $? "$name" "exit status $status
$(head -n 60 "$tmp/stderr")"
}

if ((EUID != 0)); then
	skip_all "tracing needs root"
fi
/usr/bin/python3 "$ROOT/tests/workloads/gil_contend.py" 30 &
pids+=($!)
for cuda in "$B"/tests/workloads/cuda_calls-1?; do
	[[ -x $cuda ]] || continue
	"$cuda" 30 &
	pids+=($!)
done
sanitized "records two seconds" "0 3" "$sonde" record -d 2 -t +sched -o "$tmp/trace"
sanitized "lists families, probes, events, fields, options, reports and formats" 0 "$sonde" list families probes events fields options reports formats
sanitized "prints the summary" 0 "$sonde" report "$tmp/trace"
sanitized "checks the file" 0 "$sonde" info --verify "$tmp/trace"
for report in $(names reports); do
	sanitized "report $report" 0 "$sonde" report "$tmp/trace" "$report"
done
for format in $(names formats); do
	more=()
	status=0
	[[ $format != csv ]] || more=(--event sched_run)
	[[ $format != cycle ]] || status=2 # the recording had no schedule
	[[ $format != kineto ]] || more=(--event $$)
	sanitized "export to $format" "$status" "$sonde" export "$tmp/trace" --to "$format" "${more[@]}" -o "$tmp/out.$format"
done
done_testing
