#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guest.sh TREE SECONDS STEP..: the first process of the virtual machine's root. Mounts what a system has, runs each step of
# tests/vm/steps.py, and leaves output and kernel log as a tar on the second disk. All that in so many seconds since the
# kernel began, of which no step gets more than two fifths.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
tree=$1 seconds=$2
shift 2
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /out # a report of processes that a file system blocks has a way out
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
busybox ip link set lo up
# Where the kernel preempts in programs of tracepoints (7.x) every program that is skipped meanwhile is a loss: emulated
# programs take long enough for that to be common, and with longer slices it is less so
mount -t debugfs debugfs /sys/kernel/debug
slice=/sys/kernel/debug/sched/base_slice_ns
[[ ! -w $slice ]] || echo "${SLICE_NS:-30000000}" > $slice
export ROOT=$tree B=$tree/build SONDE=$tree/build/sonde CUDA=$tree/build/cuda NCCL=$tree/build/nccl TMPDIR=/tmp
export PROGRESS=/dev/ttyS1 # what a step prints is seen outside at once
cd "$tree" || exit
uname -r > /out/release
for step; do
	read -r up _ < /proc/uptime
	left=$((seconds - ${up%.*})) most=$((seconds * 2 / 5))
	echo "step $step"
	if ((left < 10)); then
		printf '%s\n' "not ok - there is time left for it" "status 1" > "/out/$step"
		continue
	fi
	began=$EPOCHREALTIME
	/usr/bin/python3 tests/vm/steps.py "$step" $((left < most ? left : most)) > "/out/$step" 2>&1 < /dev/null
	echo "status $?" >> "/out/$step"
	awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "seconds %.1f\n", b - a }' | tee -a "/out/$step"
done
echo "steps have ended"
dmesg > /out/dmesg
# Not all file systems, which a process that hangs may hold
tar -cf /dev/vdb -C /out . && sync /dev/vdb
echo "results are written"
busybox poweroff -nf
