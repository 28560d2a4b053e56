# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Prints the TAP output of a shell test: one line per check, and the plan at the end.
checks=0 failed=0

result() { # STATUS NAME [DETAILS]: reports a check, which passed if STATUS is 0. Details are printed only if it failed.
	checks=$((checks + 1))
	if [[ $1 == 0 ]]; then
		echo "ok $checks - $2"
	else
		failed=1
		echo "not ok $checks - $2"
		[[ -z ${3:-} ]] || echo "# ${3//$'\n'/$'\n'# }"
	fi
	return 0
}

check() { # NAME COMMAND..: passes if the command succeeds; prints the command's output if it fails.
	local name=$1 out status=0
	shift
	out=$("$@" 2>&1) || status=$?
	result "$status" "$name" "$(tail -n 40 <<< "$out")"
}

skip() { # NAME WHY: reports a check that this machine cannot make
	checks=$((checks + 1))
	echo "ok $checks - $1 # SKIP $2"
}

done_testing() { # prints the plan and ends the test
	echo "1..$checks"
	exit "$failed"
}

skip_all() { # WHY: skips the whole test
	skip everything "$1"
	done_testing
}
