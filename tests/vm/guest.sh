#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guest.sh TREE STEP..: the first process of the virtual machine's root. Mounts what a system has, runs each step of
# tests/vm/steps.py, and leaves output and kernel log as a tar on the second disk.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
tree=$1
shift
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
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
cd "$tree" || exit
uname -r > /out/release
for step; do
	echo "step $step"
	began=$EPOCHREALTIME
	/usr/bin/python3 tests/vm/steps.py "$step" > "/out/$step" 2>&1 < /dev/null
	echo "status $?" >> "/out/$step"
	awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "seconds %.1f\n", b - a }' | tee -a "/out/$step"
done
dmesg > /out/dmesg
tar -cf /dev/vdb -C /out .
sync
busybox poweroff -f
