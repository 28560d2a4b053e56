#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# roots.sh: functions for scripts that test sonde in new Debian roots. Source it, then
# call own_namespace "$@". The roots get the host's apt and pip settings, certificates
# and proxies, so that they can reach the same servers.
# shellcheck disable=SC2034 # skipped: the scripts' own sums
passed=0 failed=0 skipped=0

# Everything is mounted in a private mount namespace, which ends with its last process.
# Outside of it nothing is mounted below the roots, so that removing them is safe.
own_namespace() { # the script's arguments: the script runs again, with the folder for its roots as $work
	if ((EUID != 0)); then
		echo "A new root needs root: sudo make $(basename "$0" .sh)" >&2
		exit 1
	fi
	work=${SONDE_ROOTS_DIR:-}
	[[ -z $work ]] || return 0
	mkdir -p build
	SONDE_ROOTS_DIR=$(mktemp -d "$PWD/build/roots.XXXXXX")
	export SONDE_ROOTS_DIR
	child=
	cleanup() {
		local p i
		for i in {1..100}; do
			[[ -z $child ]] || kill "$child" 2> /dev/null || child=
			((i < 50)) || [[ -z $child ]] || kill -KILL "$child" 2> /dev/null || true
			for p in /proc/[0-9]*; do
				[[ $(readlink "$p/root" 2> /dev/null) != "$SONDE_ROOTS_DIR"/* ]] ||
					kill -KILL "${p#/proc/}" 2> /dev/null || true
			done
			[[ -n $child ]] || break
			sleep 0.1
		done
		rm -rf --one-file-system "$SONDE_ROOTS_DIR"
	}
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	# In the background, so that the shell handles a signal at once
	unshare --mount --propagation private "$0" "$@" &
	child=$!
	wait "$child"
	exit
}

find_mirror() { # sets $mirror; debootstrap knows nothing of apt's proxy
	local proxy=
	mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
		grep -oE "https?://[^ ]+/debian/?( |\$)" | head -n 1 | tr -d ' ' || true)
	mirror=${mirror:-http://deb.debian.org/debian}
	eval "$(apt-config shell proxy Acquire::http::Proxy)"
	[[ -z $proxy || -n ${http_proxy:-} ]] || export http_proxy=$proxy
}

# A root with only make installed; debootstrap's result is cached in build/roots/ for a day
new_root() { # SUITE DIR
	local archive=build/roots/$1.tar
	if [[ -z $(find "$archive" -mtime -1 2> /dev/null) ]]; then
		mkdir -p build/roots
		debootstrap --variant=minbase --include=make "$1" "$work/$1.new" "$mirror" > "$work/log" 2>&1 || {
			tail -n 20 "$work/log"
			rm -rf --one-file-system "$work/$1.new"
			return 1
		}
		tar -C "$work/$1.new" --one-file-system --xattrs -cf "$archive.$$" .
		mv "$archive.$$" "$archive"
		rm -rf --one-file-system "$work/$1.new"
	fi
	mkdir "$2" && tar -C "$2" --xattrs --numeric-owner -xpf "$archive" || return
	lend "$2" "$1"
}

copy_tree() { # DIR: what git knows or would add
	mkdir -p "$1"
	git ls-files -z --cached --others --exclude-standard |
		while IFS= read -r -d '' f; do [[ ! -e $f && ! -L $f ]] || printf '%s\0' "$f"; done |
		tar --null -T - -cf - | tar -xf - --no-same-owner -C "$1"
}

lend_files() { # ROOT PATH..
	local to=$1 path
	shift
	for path; do
		[[ -e $path ]] || continue
		mkdir -p "$to${path%/*}"
		cp -a "$path" "$to${path%/*}/"
	done
}

lend() { # ROOT SUITE
	local to=$1 suite=$2 f sources=()
	lend_files "$to" /etc/resolv.conf /etc/hosts /etc/ssl/certs /usr/share/ca-certificates /etc/ca-certificates.conf \
		/usr/local/share/ca-certificates /etc/apt/keyrings /etc/apt/trusted.gpg.d /etc/apt/auth.conf.d /etc/apt/auth.conf \
		/usr/share/keyrings /etc/pip.conf /root/.config/pip /root/.pip
	# Only Debian's own package sources, and the settings for reaching them
	for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		grep -sqE "(^|[[:space:]])$suite([[:space:]]|\$)" "$f" || continue
		rm -f "$to/etc/apt/sources.list"
		sources+=("$f")
	done
	((${#sources[@]} == 0)) || lend_files "$to" "${sources[@]}"
	# a mirror's state of sid may be older than the validity of its lists
	{ apt-config dump | grep -E '^Acquire::' || true; [[ $suite != sid ]] || echo 'Acquire::Check-Valid-Until "false";'; } > "$to/etc/apt/apt.conf.d/99lent"
	# a temporary root need not be synced to the disk
	echo force-unsafe-io > "$to/etc/dpkg/dpkg.cfg.d/unsafe-io"
}

# What the host has compiled from the same text by the same compiler is not compiled again
lend_ccache() { # ROOT
	local folder
	folder=$(command -v ccache > /dev/null && ccache --get-config cache_dir) || return 0
	mkdir -p "$folder" "$1/root/.cache/ccache"
	mount --bind "$folder" "$1/root/.cache/ccache"
	inside "$1" "apt-get update -qq && apt-get install -y -qq --no-install-recommends ccache" > /dev/null 2>&1 || true
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
	# / must be a mount point in the root, as on any machine
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
	# One recording at a time on a machine, in whatever root (tests/lib/live_lock.py)
	SONDE_LIVE_LOCK=1 flock -o /run/lock/sonde-live.lock \
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
		[[ -z ${SHOW:-} ]] || sed 's/^/    /' "$log"
		result ok "$1" $((SECONDS - began))
	else
		tail -n 150 "$log" | sed 's/^/    /'
		result "not ok" "$1" $((SECONDS - began))
	fi
}

mount_tracing() { # ROOT: what systemd mounts
	local fs
	for fs in tracefs:/sys/kernel/tracing bpf:/sys/fs/bpf cgroup2:/sys/fs/cgroup; do
		mount -t "${fs%%:*}" none "$1${fs#*:}" || echo "No ${fs%%:*} here"
	done
}

# Tests an installed sonde in a root without a compiler
use='! command -v cc && sonde list events && sonde record -d 1 -o /tmp/x.sonde && sonde report /tmp/x.sonde && rm /tmp/x.sonde'
