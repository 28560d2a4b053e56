#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# fresh.sh: proves the README's commands in a new Debian 12 root that holds
# nothing but make: `make demo` with bare /proc, /sys and /dev, `make test` with
# tracefs, bpffs and cgroup2 where systemd mounts them, the shim in Debian 11, and
# the .deb in a root without a compiler. The host lends its apt and pip settings,
# certificates and proxies to these roots, so that they reach what the host reaches.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=bookworm

if ((EUID != 0)); then
	echo "A new root wants root: sudo make fresh" >&2
	exit 1
fi

# All is mounted in a mount namespace of its own, which ends with its last
# process; out here nothing is mounted below the roots, so removing them is safe.
if [[ -z ${SONDE_FRESH_DIR:-} ]]; then
	mkdir -p build
	SONDE_FRESH_DIR=$(mktemp -d "$PWD/build/fresh.XXXXXX")
	export SONDE_FRESH_DIR
	child=
	cleanup() {
		local p i
		for i in {1..100}; do
			[[ -z $child ]] || kill "$child" 2> /dev/null || child=
			((i < 50)) || [[ -z $child ]] || kill -KILL "$child" 2> /dev/null || true
			for p in /proc/[0-9]*; do
				[[ $(readlink "$p/root" 2> /dev/null) != "$SONDE_FRESH_DIR"/* ]] ||
					kill -KILL "${p#/proc/}" 2> /dev/null || true
			done
			[[ -n $child ]] || break
			sleep 0.1
		done
		rm -rf --one-file-system "$SONDE_FRESH_DIR"
	}
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	# In the background, so that a signal is acted on at once
	unshare --mount --propagation private "$0" &
	child=$!
	wait "$child"
	exit
fi

work=$SONDE_FRESH_DIR
root=$work/root
bare=$work/bare
passed=0 failed=0 skipped=0

lend_files() { # ROOT PATH..
	local to=$1 path
	shift
	for path; do
		[[ -e $path ]] || continue
		mkdir -p "$to${path%/*}"
		cp -a "$path" "$to${path%/*}/"
	done
}

lend() { # ROOT
	local to=$1 f
	lend_files "$to" /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/share/ca-certificates /etc/ca-certificates.conf \
		/usr/local/share/ca-certificates /etc/apt/keyrings /etc/apt/trusted.gpg.d /etc/apt/auth.conf.d /etc/apt/auth.conf \
		/usr/share/keyrings /etc/pip.conf /root/.config/pip /root/.pip
	# Debian's own sources alone; of the settings, how to get at them
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		grep -sqE "(^|[[:space:]])$suite([[:space:]]|\$)" "$f" || continue
		rm -f "$to/etc/apt/sources.list"
		sources+=("$f")
	done
	((${#sources[@]} == 0)) || lend_files "$to" "${sources[@]}"
	apt-config dump | grep -E '^Acquire::' > "$to/etc/apt/apt.conf.d/99lent" || true
	# A root that is thrown away need not reach the disk
	echo force-unsafe-io > "$to/etc/dpkg/dpkg.cfg.d/unsafe-io"
}

wheel_dirs() { # local folders that pip's settings name
	{
		cat /etc/pip.conf /root/.config/pip/pip.conf /root/.pip/pip.conf 2> /dev/null || true
		env | grep '^PIP_' || true
	} | grep -oE '(^|[ =])(file://)?/[^ ]+' | sed -E 's,^[ =]*(file://)?,,; s,/simple/?$,,' | sort -u |
		while read -r d; do [[ ! -d $d ]] || echo "$d"; done
}

mounts() { # ROOT
	local d
	# So that / is a mount point in there, as on any machine
	mount --bind "$1" "$1"
	mount -t proc proc "$1/proc"
	mount -t sysfs sysfs "$1/sys"
	mount --rbind /dev "$1/dev"
	while read -r d; do
		mkdir -p "$1$d"
		mount --bind "$d" "$1$d"
		mount -o remount,bind,ro "$1$d"
	done < <(wheel_dirs)
}

inside() { # ROOT COMMAND: what a login there would have, and the host's ways out
	local keep=() v
	while read -r v; do
		keep+=("$v")
	done < <(env | grep -E '^([a-z]+_proxy|[A-Z]+_PROXY|PIP_[A-Z_]+|WERROR|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)=')
	env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin FRESH=1 \
		"${keep[@]}" chroot "$1" /bin/bash -c "$2" < /dev/null
}

result() { # ok|not ok, NAME, SECONDS
	echo "$1 - $2 ($3 s)"
	if [[ $1 == ok ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

check() { # NAME ROOT COMMAND
	local began=$SECONDS log=$work/log
	if inside "$2" "$3" > "$log" 2>&1; then
		[[ -z ${SONDE_FRESH_SHOW:-} ]] || sed 's/^/    /' "$log"
		result ok "$1" $((SECONDS - began))
	else
		tail -n 150 "$log" | sed 's/^/    /'
		result "not ok" "$1" $((SECONDS - began))
	fi
}

new_roots() {
	local proxy=
	mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
		grep -oE "https?://[^ ]+/debian/?( |\$)" | head -n 1 | tr -d ' ' || true)
	mirror=${mirror:-http://deb.debian.org/debian}
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[[ -z $proxy || -n ${http_proxy:-} ]] || export http_proxy=$proxy
	debootstrap --variant=minbase --include=make "$suite" "$root" "$mirror" > "$work/log" 2>&1 || {
		tail -n 20 "$work/log"
		return 1
	}
	sources=()
	lend "$root"
	cp -a "$root" "$bare"
	mkdir -p "$root/root/sonde"
	git ls-files -z --cached --others --exclude-standard |
		while IFS= read -r -d '' f; do [[ ! -e $f && ! -L $f ]] || printf '%s\0' "$f"; done |
		tar --null -T - -cf - | tar -xf - --no-same-owner -C "$root/root/sonde"
	mounts "$root"
	mounts "$bare"
}

began=$SECONDS
echo "A new Debian root"
new_roots || {
	result "not ok" "a new Debian root" $((SECONDS - began))
	echo "$passed passed, $failed failed, $skipped skipped"
	exit 1
}
result ok "a new Debian root" $((SECONDS - began))

SONDE_FRESH_SHOW=1 check "make demo" "$root" "cd /root/sonde && make demo && test -s demo.sonde"

for fs in tracefs:/sys/kernel/tracing bpf:/sys/fs/bpf cgroup2:/sys/fs/cgroup; do
	mount -t "${fs%%:*}" none "$root${fs#*:}" || echo "No ${fs%%:*} here"
done
began=$SECONDS
inside "$root" "cd /root/sonde && make test 2>&1" | tee "$work/test" | sed 's/^/    /' || true
line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/test" | tail -n 1 || true)
if read -r p _ f _ s _ <<< "$line" && [[ -n $line ]]; then
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	echo "make test: $line ($((SECONDS - began)) s)"
else
	result "not ok" "make test prints its sum" $((SECONDS - began))
fi

check "make install, and make dist" "$root" "cd /root/sonde && make install DESTDIR=/tmp/dest PREFIX=/usr &&
	test -x /tmp/dest/usr/bin/sonde && make dist"
# Where the shim has to get along with an older glibc
old=$work/old
if debootstrap --variant=minbase bullseye "$old" "$mirror" > "$work/log" 2>&1; then
	mounts "$old"
	cp "$root/root/sonde/build/libsonde-cupti.so" "$old/tmp/"
	check "the shim in Debian 11" "$old" "LD_BIND_NOW=1 LD_PRELOAD=/tmp/libsonde-cupti.so sleep 3 &
		sleep 1; grep -qx sonde-cupti /proc/\$!/task/*/comm"
else
	echo "Left out: the shim in Debian 11, for want of its packages"
fi
if cp "$root"/root/sonde/build/dist/*.deb "$bare/tmp/" 2> /dev/null; then
	check "the .deb, without a compiler" "$bare" "apt-get update -qq && apt-get install -y -qq --no-install-recommends /tmp/*.deb > /tmp/log 2>&1 || { cat /tmp/log; exit 1; }
		! command -v cc && sonde list events && sonde record -d 1 -o /tmp/x.sonde && sonde report /tmp/x.sonde"
fi

echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
