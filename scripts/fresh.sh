#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fresh.sh: tests the README's commands in a new Debian 12 root with only make
# installed: `make demo` with bare /proc, /sys and /dev, `make test` with tracefs,
# bpffs and cgroup2 where systemd mounts them, the shim in Debian 11, and the .deb in
# a root without a compiler. T=smoke, T=gate: runs only a part of the tests. T=smoke also leaves out the packages.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=bookworm

. scripts/roots.sh
own_namespace "$@"
root=$work/root
bare=$work/bare

new_roots() {
	find_mirror
	new_root "$suite" "$root" || return
	[[ ${T:-} == smoke ]] || { cp -a "$root" "$bare" && mounts "$bare"; }
	copy_tree "$root/root/sonde"
	mounts "$root"
}

began=$SECONDS
echo "A new Debian root"
new_roots || {
	result "not ok" "a new Debian root" $((SECONDS - began))
	echo "$passed passed, $failed failed, $skipped skipped"
	exit 1
}
result ok "a new Debian root" $((SECONDS - began))

lend_ccache "$root"
SHOW=1 check "make demo" "$root" "cd /root/sonde && make demo && test -s demo.sonde"

mount_tracing "$root"
began=$SECONDS
inside "$root" "cd /root/sonde && make test T=${T:-all} 2>&1" | tee "$work/test" | sed 's/^/    /' || true
line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/test" | tail -n 1 || true)
if read -r p _ f _ s _ <<< "$line" && [[ -n $line ]]; then
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "make test: $line ($((SECONDS - began)) s)"
else
	result "not ok" "make test prints its sum" $((SECONDS - began))
fi

if [[ ${T:-} == smoke ]]; then
	echo "$passed passed, $failed failed, $skipped skipped"
	((failed == 0))
	exit
fi
check "make install, and make dist" "$root" "cd /root/sonde && make install DESTDIR=/tmp/dest PREFIX=/usr &&
	test -x /tmp/dest/usr/bin/sonde && make dist"
# The shim must work with an older glibc
old=$work/old
if new_root bullseye "$old"; then
	mounts "$old"
	cp "$root/root/sonde/build/libsonde-cupti.so" "$old/tmp/"
	# perl is linked with libpthread and libdl, like each program that uses CUDA; sleep has neither
	check "the shim in Debian 11" "$old" "LD_BIND_NOW=1 LD_PRELOAD=/tmp/libsonde-cupti.so perl -e 'sleep 3' &
		sleep 1; grep -qx sonde-cupti /proc/\$!/task/*/comm"
	check "the shim in Debian 11, in a program without threads" "$old" "LD_BIND_NOW=1 LD_PRELOAD=/tmp/libsonde-cupti.so sleep 0"
	cp "$root/root/sonde/build/sonde-portable" "$old/tmp/"
	check "Debian 11's loader says that the program needs a newer glibc" "$old" "! /tmp/sonde-portable list events 2> /tmp/said &&
		cat /tmp/said && grep -q \"GLIBC_2.34' not found\" /tmp/said"
else
	echo "Left out: the shim in Debian 11: its packages are missing"
fi
if cp "$root"/root/sonde/build/dist/*.deb "$bare/tmp/" 2> /dev/null; then
	check "the .deb, without a compiler" "$bare" "dpkg -i /tmp/*.deb && $use"
fi

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
