#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# demo.sh BUILD: traces for five seconds what already runs, a Python program whose
# threads fight for the GIL and a program that calls CUDA, and prints the summary.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
sonde=$build/sonde
out=demo.sonde

if ((EUID != 0)); then
	echo "Tracing wants root: sudo make demo" >&2
	exit 1
fi

pids=()
stop() {
	((${#pids[@]})) || return 0
	kill "${pids[@]}" 2> /dev/null || true
	wait "${pids[@]}" 2> /dev/null || true
	pids=()
}
trap stop EXIT
trap 'exit 130' INT TERM HUP

/usr/bin/python3 tests/workloads/gil_contend.py &
pids+=($!)
echo "Runs already: process $!, Python, four threads that want the GIL"
cuda=$build/tests/workloads/cuda_calls-13
if [[ -x $cuda ]]; then
	"$cuda" &
	pids+=($!)
	echo "Runs already: process $!, C, three threads that call the CUDA runtime"
else
	echo "Left out: the program that calls CUDA, for want of libcudart"
fi
sleep 1

echo "\$ sonde record -d 5 -t +sched,syscall,lock -o $out -f"
# for output that goes into the docs nothing else is to be in it
only=()
[[ -z ${DEMO_ONLY:-} ]] || only=(-p "$(IFS=,; echo "${pids[*]}")")
"$sonde" record -d 5 -t +sched,syscall,lock -o $out -f "${only[@]}"
stop
echo "\$ sonde report $out"
"$sonde" report $out
