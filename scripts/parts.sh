#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# parts.sh: functions for scripts that run several make goals, each of which ends with
# `N passed, N failed, N skipped`, and add up their results. Source it.
# $uncounted: the parts that print no such line, each of which is one check
# Without these each goal uses all cores
unset MAKELEVEL MAKEFLAGS MFLAGS
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
ran=() uncounted=" "

run() { # PART GOAL..: makes the goal, and prints its output and the seconds that it took
	local log=$logs/$1 began=$SECONDS
	ran+=("$1")
	shift
	echo "== make $*"
	make --no-print-directory "$@" 2>&1 | tee "$log"
	echo "${PIPESTATUS[0]} $((SECONDS - began))" > "$log.status"
	echo "== make $*: $((SECONDS - began)) s"
}

beside() { # PART GOAL..: run() in the background. Its output is printed by join().
	ran+=("$1")
	run "$@" > "$logs/$1.output" &
}

join() { # PART..
	local part
	wait
	for part; do
		cat "$logs/$part.output"
	done
}

# The failed checks of all parts with their details, in at most 45 lines: each check gets its share of these
failures() {
	local part each count
	count=$(cat "${ran[@]/#/$logs/}" | grep -c '^ *not ok')
	each=$((count > 0 ? 45 / count : 0))
	for part in "${ran[@]}"; do
		awk -v part="$part" -v each=$((each > 1 ? each : 1)) \
			'{ sub(/^ +/, "") } # what runs in a new root is indented
			/^not ok/ { print part ": " substr($0, 1, 300); left = each - 1; next }
			/^#/ && left > 0 { print "  " substr($0, 1, 300); left--; next }
			/^#/ && /to run only this/ { print "  " $0 } !/^#/ { left = 0 }' "$logs/$part"
	done | head -n 45
}

summary() { # prints the result of each part and the sum, and fails if anything failed
	local part line last status seconds p f s passed=0 failed=0 skipped=0 rows=()
	for part in "${ran[@]}"; do
		read -r status seconds < "$logs/$part.status"
		p=0 f=0 s=0
		line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$logs/$part" | tail -n 1)
		[[ -z $line ]] || read -r p _ f _ s _ <<< "$line"
		if [[ -z $line && $uncounted == *" $part "* && $status == 0 ]]; then
			p=1
		elif [[ -z $line || $status != 0 ]] && ((f == 0)); then
			f=1 # it ended badly without saying how
		fi
		if ((f > 0)) && ! grep -q '^ *not ok' "$logs/$part"; then
			last=$(tail -n 20 "$logs/$part" | sed 's/^/# /')
			printf '%s\n' "not ok - make ends with status $status and names no failed check; its last lines:" "$last" >> "$logs/$part"
		fi
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
		rows+=("$(printf '%-10s %6d s %7d passed %4d failed %4d skipped' "$part" "$seconds" "$p" "$f" "$s")")
	done
	if ((failed > 0)); then
		echo "== what failed"
		failures
	fi
	sed -n '/^ *Passed when run again/,/^ *$/p' "${ran[@]/#/$logs/}"
	printf '%s\n' "${rows[@]}"
	echo "$((SECONDS / 60)) minutes and $((SECONDS % 60)) seconds"
	echo "$passed passed, $failed failed, $skipped skipped"
	((failed == 0))
}
