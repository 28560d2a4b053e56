# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a test in shell prints: a line of TAP for each check, and at the end how many checks there were.
checks=0 failed=0

result() { # STATUS NAME [DETAILS]: a check that has been made; 0 is passed. Details are printed where it failed.
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

check() { # NAME COMMAND..: a check that passes where the command does; its output is printed where it failed.
	local name=$1 out status=0
	shift
	out=$("$@" 2>&1) || status=$?
	result "$status" "$name" "$(tail -n 40 <<< "$out")"
}

skip() { # NAME WHY: a check that this machine cannot make
	checks=$((checks + 1))
	echo "ok $checks - $1 # SKIP $2"
}

done_testing() { # ends the test
	echo "1..$checks"
	exit "$failed"
}

skip_all() { # WHY: ends a test that this machine cannot run
	skip everything "$1"
	done_testing
}
