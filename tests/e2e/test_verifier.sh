#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# How much work each BPF program is for the kernel's verifier. That is most of the time that a start takes, and doubles
# unnoticed: a loop or a function more within another. Instructions are counted, not time, so that a busy machine passes.
# test: timeout=300 parallel
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

measure() { # OPTION OF load_each, WORDS FOR IT
	local out
	out=$("$load_each" ${1:+"$1"})
	nothing "the kernel takes each program$2" "$(grep -A30 $'\trefused' <<< "$out")"
	nothing "none takes more than $program_max instructions processed$2" \
		"$(awk -F'\t' -v max=$program_max '$5 > max { print $1 ": " $5 }' <<< "$out")"
	nothing "all together no more than $all_max$2" \
		"$(awk -F'\t' -v max=$all_max '{ sum += $5 } END { if (sum > max || !sum) print sum + 0 }' <<< "$out")"
}

measure "" ""
measure -o " with all options"
measure -n " without session links"
done_testing
