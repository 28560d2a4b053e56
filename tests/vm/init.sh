#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The first process in the initramfs: loads the modules, mounts the root and runs tests/vm/guest.sh of the tree
# that the kernel's arguments name, followed by its steps.
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
/bin/busybox echo "tests/vm/init.sh runs" > /dev/console
/bin/busybox mount -t sysfs sys /sys
for module in /modules/*; do
	/bin/busybox insmod "$module" 2> /dev/null
done
/bin/busybox mount -t ext4 /dev/vda /root || /bin/busybox poweroff -f
for dir in dev proc sys; do
	/bin/busybox mount -o move /$dir /root/$dir
done
exec /bin/busybox switch_root /root "$1/tests/vm/guest.sh" "$@"
