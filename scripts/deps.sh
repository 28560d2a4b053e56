#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# deps.sh SET..: installs the missing Debian packages of the named sets. If none is
# missing, it only runs dpkg-query once. SONDE_NO_DEPS=1 disables it.
set -euo pipefail

declare -A sets=(
	[build]="make gcc libc6-dev clang bpftool python3 libbpf-dev libelf-dev libdw-dev libzstd-dev
		 libxxhash-dev libcjson-dev libcapstone-dev liblzma-dev libsqlite3-dev libcap-dev libseccomp-dev libncurses-dev zlib1g-dev libiberty-dev"
	[demo]="python3 python3-pip"
	[test]="python3 python3-pip python3-zstandard libpython3-dev zstd binutils bolt-16 gdb g++ debootstrap util-linux procps
		groff-base zsh xz-utils bubblewrap crun ccache"
	[smoke]="python3 python3-zstandard libpython3-dev zstd binutils procps util-linux"
	[lint]="ccache git clang-format cppcheck shellcheck python3 python3-venv"
	[fuzz]="clang libclang-rt-dev python3"
	[bench]="python3"
	[peers]="bpftrace"
	[dist]="dpkg-dev binutils libbz2-dev"
	[fresh]="git debootstrap util-linux"
	[vm]="qemu-system-x86 busybox-static kmod e2fsprogs debian-archive-keyring python3 python3-zstandard bpftool xz-utils zstd"
)
headers="bpf/libbpf.h gelf.h elfutils/libdw.h zstd.h xxhash.h cjson/cJSON.h capstone/capstone.h lzma.h sqlite3.h sys/capability.h seccomp.h curses.h zlib.h libiberty/demangle.h"

[[ -z ${SONDE_NO_DEPS:-} ]] || exit 0
needed=()
for set in "$@"; do
	read -r -d '' -a packages <<< "${sets[$set]}" || true
	needed+=("${packages[@]}")
done

if ! command -v dpkg-query > /dev/null; then
	missing=()
	for tool in make cc clang bpftool; do
		PATH=$PATH:/usr/sbin command -v "$tool" > /dev/null || missing+=("$tool")
	done
	for h in $headers; do
		echo "#include <$h>" | cc -E -x c - > /dev/null 2>&1 || missing+=("<$h>")
	done
	((${#missing[@]})) || exit 0
	echo "sonde is made on Debian 12; here these have to be installed by hand first: ${missing[*]}" >&2
	echo "On Debian the packages are: ${needed[*]}" >&2
	exit 1
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${needed[@]}" 2> /dev/null | sed -n 's/^installed //p' || true)
mapfile -t missing < <(printf '%s\n' "${needed[@]}" | sort -u | grep -vxF -e "$installed" || true)
((${#missing[@]})) || exit 0

command="apt-get install -y --no-install-recommends ${missing[*]}"
if ((EUID != 0)); then
	echo "Not installed: ${missing[*]}. As root: $command" >&2
	exit 1
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# package lists may be absent or stale; another source may not answer although Debian's do
apt=(apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
install=("${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}")
"${install[@]}" > "$log" 2>&1 < /dev/null && exit 0
"${apt[@]}" update -qq >> "$log" 2>&1 < /dev/null || true
"${install[@]}" >> "$log" 2>&1 < /dev/null && exit 0
tail -n 20 "$log" >&2
echo "Could not install what is missing: $command" >&2
exit 1
