#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Makes a Debian sid root file system with the newest CPythons, once, and prints
# its path. sonde sees the processes in it as it sees those of a container. The root
# is kept under $SONDE_TEST_CACHE or build/; it is installed with the host's mirror,
# proxy and certificates.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${SONDE_TEST_CACHE:-$top/build}
root=$cache/sid
packages=libpython3.14-stdlib,libpython3.15-stdlib,python3.14-minimal,python3.15-minimal

# Tests run side by side: the first one makes the root, the others wait. debootstrap does not inherit the descriptor,
# because a process that outlives it would keep the lock.
mkdir -p "$cache"
exec 9>"$cache/sid.lock"
flock 9
if [ -e "$root/usr/lib/python3.14/asyncio" ] && [ -e "$root/usr/lib/python3.15/asyncio" ]; then
	echo "$root"
	exit 0
fi
[ "$(id -u)" = 0 ] || { echo "sid-root.sh: needs root for debootstrap" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "sid-root.sh: install debootstrap" >&2; exit 1; }

# one-line and deb822 sources; the first Debian mirror that is not a security one
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
	sed -n -e 's/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' -e 's/^URIs: *\([^ ]*\).*/\1/p' |
	grep -v security | grep -m1 '/debian/\{0,1\}$') ||
	{ echo "sid-root.sh: no Debian mirror in the apt sources" >&2; exit 1; }

# debootstrap fetches with wget, which knows nothing of apt's proxy
proxy=$(apt-config shell p Acquire::http::Proxy | sed -n "s/^p='\(.*\)'$/\1/p")
[ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export http_proxy="${http_proxy:-$proxy}"
proxy=$(apt-config shell p Acquire::https::Proxy | sed -n "s/^p='\(.*\)'$/\1/p")
[ -z "$proxy" ] || [ "$proxy" = DIRECT ] || export https_proxy="${https_proxy:-$proxy}"
ca=$(apt-config shell p Acquire::https::CaInfo | sed -n "s/^p='\(.*\)'$/\1/p")
[ -z "$ca" ] || set -- --ca-certificate="$ca"

tmp=$(mktemp -d "$cache/sid.XXXXXX")
trap 'rm -rf "$tmp"' EXIT INT TERM
chmod 755 "$tmp"
debootstrap "$@" --variant=minbase --include="$packages" sid "$tmp" "$mirror" >"$tmp.log" 2>&1 9>&- || {
	tail -20 "$tmp.log" >&2
	rm -f "$tmp.log"
	exit 1
}
rm -f "$tmp.log"
rm -rf "$tmp/var/cache/apt/archives" "$root"
mv "$tmp" "$root"
trap - EXIT
echo "$root"
