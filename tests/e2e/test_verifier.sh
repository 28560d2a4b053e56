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
n=0 failed=0

if [[ $(id -u) != 0 ]]; then
	echo "1..0 # SKIP needs root"
	exit 0
fi

check() { # NAME EXPLANATION: ok if there is no explanation
	n=$((n + 1))
	if [[ -z $2 ]]; then
		echo "ok $n - $1"
	else
		printf '%s\n' "$2" | sed 's/^/# /'
		echo "not ok $n - $1"
		failed=1
	fi
}

measure() { # OPTION OF load_each, WORDS FOR IT
	local out
	out=$("$load_each" ${1:+"$1"})
	check "the kernel takes each program$2" "$(grep -A30 $'\trefused' <<< "$out")"
	check "none takes more than $program_max instructions processed$2" \
		"$(awk -F'\t' -v max=$program_max '$5 > max { print $1 ": " $5 }' <<< "$out")"
	check "all together no more than $all_max$2" \
		"$(awk -F'\t' -v max=$all_max '{ sum += $5 } END { if (sum > max || !sum) print sum + 0 }' <<< "$out")"
}

measure "" ""
measure -o " with all options"
measure -n " without session links"
exit $failed
