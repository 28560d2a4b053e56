#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Limits the number of instructions that the kernel's verifier processes for each BPF program. Verifying takes most of
# the time of a start, and one more loop or inlined function can double it. Instructions don't depend on the machine's
# speed, as time does.
# test: timeout=300 parallel gate
set -uo pipefail
cd "${ROOT:-$(dirname "$0")/../..}" || exit
program_max=50000
all_max=400000
load_each=${B:-build}/tests/vm/load_each
# shellcheck source=tests/lib/tap.sh
. "${ROOT:-.}/tests/lib/tap.sh"

if [[ $(id -u) != 0 ]]; then
	skip_all "loading programs needs root"
fi

nothing() { # NAME EXPLANATION: passes if there is nothing to explain
	[[ -z $2 ]]
	result $? "$1" "$2"
}

measure() { # OPTION-OF-load_each SUFFIX-OF-NAMES
	local out
	out=$("$load_each" ${1:+"$1"})
	nothing "the kernel accepts each program$2" "$(grep -A30 $'\trefused' <<< "$out")"
	nothing "the verifier processes at most $program_max instructions of each program$2" \
		"$(awk -F'\t' -v max=$program_max '$5 > max { print $1 ": " $5 }' <<< "$out")"
	nothing "the verifier processes at most $all_max instructions of all programs$2" \
		"$(awk -F'\t' -v max=$all_max '{ sum += $5 } END { if (sum > max || !sum) print sum + 0 }' <<< "$out")"
}

measure "" ""
measure -o " with all options"
measure -n " without session links"
done_testing
