#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# gate.sh [--clone]: what must pass before a change lands, in 10 to 15 minutes on two
# CPUs: lint without cppcheck; unit, golden and fuzz tests, plain and sanitized; the
# live test that proves most of each family, report and export; the README's commands
# in a new Debian root; and a boot of Linux 6.1. `make check-all` runs all else.
# --clone runs .ci/run on a clone of HEAD in build/gate/clone.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/parts.sh

if [[ ${1:-} == --clone ]]; then
	commit=$(git rev-parse HEAD) || exit
	[[ -z $(git status --porcelain) ]] || echo "Not part of HEAD, and left out: $(git status --porcelain | wc -l) changed files"
	mkdir -p build/gate
	exec {one}> build/gate/lock
	flock -n "$one" || { echo "Another gate uses build/gate/clone" >&2; exit 1; }
	# a run that was killed may have left /proc mounted in a root below
	awk -v below="$PWD/build/gate/clone/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | xargs -r umount -l
	rm -rf --one-file-system build/gate/clone
	git clone -q . build/gate/clone || exit
	load=$(cut -d ' ' -f 1-3 /proc/loadavg)
	CI=true bash build/gate/clone/.ci/run < /dev/null 2>&1 | tee "build/gate/$commit.log"
	status=${PIPESTATUS[0]}
	{
		((status == 0)) && echo "green" || echo "red, status $status"
		echo "load average before $load, after $(cut -d ' ' -f 1-3 /proc/loadavg)"
		tail -n 60 "build/gate/$commit.log"
	} > "build/gate/$commit"
	echo "The result is in build/gate/$commit, the whole output in build/gate/$commit.log"
	exit "$status"
fi

export WERROR=1
scripts/deps.sh build lint test fresh vm || exit
# The network is idle while the compiler works
(scripts/distros.sh --fetch bookworm; exec tests/vm/kernel.sh 6.1 build/vm/kernels/6.1) > /dev/null 2>&1 &
fetching=$!

run lint lint QUICK=1
wait "$fetching"
run test test T=gate
# The emulated machine expects slow processors, and the smoke tests judge no times
beside vm vm QUICK=1
run fresh fresh T=smoke
join vm
summary
