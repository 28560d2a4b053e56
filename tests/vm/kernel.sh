#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# kernel.sh WHICH DIR: puts one of Debian's kernels under DIR, once: DIR/vmlinuz, DIR/version and
# DIR/modules/, what an initramfs needs to mount the root, numbered in the order of loading.
# WHICH is a series such as 6.1, or "newest". Prints the version. Exit status 2: there is no such kernel.
set -euo pipefail
which=$1 dir=$2
modules=(virtio_pci virtio_blk crc32c ext4)
keys=/usr/share/keyrings/debian-archive-keyring.gpg

if [[ -s $dir/version ]]; then
	cat "$dir/version"
	exit
fi

# the suites that have this series, oldest first
case $which in
5.10) suites="bullseye bullseye-security" ;;
6.1) suites=bookworm ;;
6.12) suites="bookworm-backports trixie" ;;
newest) suites="trixie-backports sid" ;;
*) suites="trixie-backports forky sid" ;;
esac

mkdir -p "$dir"
work=$(mktemp -d "$dir/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

# a private state of apt, so that the system's package lists don't change; proxies and other settings are the system's
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
	grep -oE "https?://[^ ]+/debian/?( |\$)" | head -n 1 | tr -d ' ' || true)
mirror=${mirror:-http://deb.debian.org/debian}
mkdir -p "$work/apt/lists/partial" "$work/apt/cache/archives/partial"
: > "$work/apt/status"
for suite in $suites; do
	url=${mirror%/}
	[[ $suite != *-security ]] || url+=-security
	echo "deb [signed-by=$keys] $url $suite main"
done > "$work/apt/sources"
cat > "$work/apt/config" << END
Dir::State "$work/apt"; Dir::State::lists "$work/apt/lists"; Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt/cache"; Dir::Etc::sourcelist "$work/apt/sources"; Dir::Etc::sourceparts "/nonexistent";
Acquire::Languages "none"; Acquire::Retries "3"; APT::Sandbox::User "root";
END
export APT_CONFIG=$work/apt/config
if ! apt-get update -qq > "$work/log" 2>&1 < /dev/null; then
	tail -n 3 "$work/log" >&2
	# an unavailable suite need not be the one with the kernel
fi

# the available versions, ascending; kernels for clouds and real time have another name after the version
flavour=$(dpkg --print-architecture)
versions=$(apt-cache pkgnames linux-image- | sed -nE "s/^linux-image-([0-9][^-]*(-[0-9]+)?)-$flavour\$/\1/p" | sort -V)
if [[ $which == newest ]]; then
	version=$(tail -n 1 <<< "$versions")
else
	version=$(grep -E "^${which//./\\.}([.-]|\$)" <<< "$versions" | tail -n 1 || true)
	# Debian drops older series: use the next one
	[[ -n $version ]] || version=$(printf '%s\n' "$which" "$versions" | sort -V | grep -A1 -xF "$which" | sed -n 2p)
fi
if [[ -z $version ]]; then
	echo "no Linux $which in Debian's $suites" >&2
	exit 2
fi

# the image is a separate package since 6.19, the modules since 7.2
packages=()
for p in image binary modules; do
	! apt-cache show --no-all-versions "linux-$p-$version-$flavour" > /dev/null 2>&1 || packages+=("linux-$p-$version-$flavour")
done
(cd "$work" && apt-get download -qq "${packages[@]}") >> "$work/log" 2>&1 < /dev/null || {
	tail -n 3 "$work/log" >&2
	echo "Linux $version cannot be downloaded" >&2
	exit 2
}
for deb in "$work"/*.deb; do
	dpkg-deb -x "$deb" "$work/root"
	rm "$deb"
done
tree=$work/root
[[ -d $tree/lib/modules ]] || tree=$work/root/usr # modprobe appends lib/modules
release=$(basename "$tree"/lib/modules/*)
depmod -b "$tree" "$release"
rm -rf "$dir/modules"
mkdir -p "$dir/modules"
n=0
for m in "${modules[@]}"; do
	modprobe -d "$tree" -S "$release" --show-depends "$m" 2>> "$work/log" || true # else built in
done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r file; do
	n=$((n + 1))
	to=$dir/modules/$(printf '%02d' $n)-$(basename "${file%.ko*}").ko
	case $file in
	*.xz) xz -dc "$file" > "$to" ;;
	*.zst) zstd -qdc "$file" > "$to" ;;
	*) cp "$file" "$to" ;;
	esac
done
image=$(find "$work/root" -name "vmlinuz*" -type f | head -n 1)
mv "$image" "$dir/vmlinuz"
echo "$release" > "$dir/version"
cat "$dir/version"
