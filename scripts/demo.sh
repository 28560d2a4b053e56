#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# demo.sh BUILD [docs]: starts a Python program whose threads contend for the GIL and a
# training loop that leaves a GPU idle, traces both for five seconds, and prints the
# summary. Without a GPU, doubles of CUDA's libraries simulate one.
# docs: a small trace for the docs, of these processes alone (scripts/readme.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
# absolute, as the shim searches for CUPTI beside libcudart only then
build=$(realpath -s "$1")
sonde=$build/sonde
out=demo.sonde

if ((EUID != 0)); then
	echo "Recording needs root: sudo make demo" >&2
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
echo "Runs already: process $!, Python, four threads that contend for the GIL"
# cuInit loads the shim, which is dormant until sonde records
families=("+syscall,lock,gpu" --cuda=stacks)
shim=$build/libsonde-cupti.so
doubles=$build/tests/fakes/cuda/13
calls=$build/tests/workloads/cuda_calls-13
if [[ -e /dev/nvidiactl ]] && python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then
	CUDA_INJECTION64_PATH=$shim python3 tests/workloads/train.py torch &
	pids+=($!)
	echo "Runs already: process $!, Python, a PyTorch training loop and its data loader, on this machine's GPU"
elif [[ -e $doubles/libcudart.so.13 && -e $doubles/libcupti.so.13 ]]; then
	CUDA_INJECTION64_PATH=$shim /usr/bin/python3 tests/workloads/train.py "$doubles" &
	pids+=($!)
	echo "Runs already: process $!, Python, a training loop and its data loader"
	echo "There is no GPU (or no PyTorch for it): this one is simulated, by doubles of libcuda, libcudart and libcupti"
elif [[ -x $calls ]]; then
	"$calls" &
	pids+=($!)
	families=("+syscall,lock")
	echo "Runs already: process $!, C, three threads that call the CUDA runtime"
	echo "Left out: the training loop on a simulated GPU: CUPTI's headers are missing"
else
	families=("+syscall,lock")
	echo "Left out: the programs that call CUDA: libcudart or CUPTI's headers are missing"
fi
sleep 1

options=(-d 5 -t "${families[@]}")
if [[ ${2:-} == docs ]]; then
	options=(-d 0.5 -t "${families[@]}" -p "$(IFS=,; echo "${pids[*]}")")
	out=docs/demo/demo.sonde
fi
echo "\$ sonde record ${options[*]} -o $out -f"
"$sonde" record "${options[@]}" -o $out -f
stop
echo "\$ sonde report $out"
"$sonde" report $out
