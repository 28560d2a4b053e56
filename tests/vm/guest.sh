#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# guest.sh TREE SECONDS STEP..: the first process of the virtual machine's root. Mounts the usual file systems, runs
# each step of tests/vm/steps.py, and writes output and kernel log as a tar to the second disk, within SECONDS since the
# kernel's start. No step gets more than two fifths of these.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
tree=$1 seconds=$2
shift 2
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /out # not on the root, so that processes blocked by a file system can be reported
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
busybox ip link set lo up
# If the kernel preempts BPF programs of tracepoints (7.x), each program that is skipped meanwhile is a loss. This is
# common for slow emulated programs, and rarer with longer time slices
mount -t debugfs debugfs /sys/kernel/debug
slice=/sys/kernel/debug/sched/base_slice_ns
[[ ! -w $slice ]] || echo "${SLICE_NS:-30000000}" > $slice
export ROOT=$tree B=$tree/build SONDE=$tree/build/sonde CUDA=$tree/build/cuda NCCL=$tree/build/nccl TMPDIR=/tmp PYTHONPATH=$tree/tests/lib
export PROGRESS=/dev/ttyS1 # the host sees a step's output at once
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
# Syncs only the disk: a hanging process may block other file systems
tar -cf /dev/vdb -C /out . && sync /dev/vdb
echo "results are written"
busybox poweroff -nf
