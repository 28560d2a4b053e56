#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# dist.sh BUILD VERSION: makes build/dist/ with a tar to unpack in / and a .deb of the
# files that `make install PORTABLE=1` installs. They need only glibc 2.34 or newer:
# Debian 12, Ubuntu 22.04, RHEL 9 and later.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 version=$2
dist=$build/dist
arch=$(dpkg --print-architecture)
name=sonde_${version}_$arch
glibc=2.34
stage=$dist/stage

rm -rf "$dist"
MAKEFLAGS='' make --no-print-directory -s B="$build" install PORTABLE=1 DESTDIR="$PWD/$stage" PREFIX=/usr > /dev/null
scripts/needs.sh $glibc "$stage/usr/bin/sonde" "$stage/usr/lib/sonde/libsonde-cupti.so" || {
	echo "The packages must run with glibc $glibc: run make dist on Debian 12, where libraries need no newer one" >&2
	exit 1
}
strip --strip-unneeded "$stage/usr/bin/sonde" "$stage/usr/lib/sonde/libsonde-cupti.so"
find "$stage/usr/share/man" -name '*.1' -exec gzip -9n {} + 2> /dev/null || true

mkdir "$stage/DEBIAN"
cat > "$stage/DEBIAN/control" << END
Package: sonde
Version: $version
Architecture: $arch
Maintainer: The sonde authors <sonde@localhost>
Installed-Size: $(du -sk "$stage/usr" | cut -f1)
Depends: libc6 (>= $glibc)
Section: devel
Priority: optional
Description: system tracer for machine learning workloads
 Attaches to what already runs (CUDA calls, the Python GIL, the
 scheduler) with eBPF and reports where the time goes. Nothing is
 restarted or modified.
END
# Creates sonde's two accounts if systemd is installed; otherwise sonde uses uids without an account
cat > "$stage/DEBIAN/postinst" << 'END'
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v systemd-sysusers > /dev/null; then
	systemd-sysusers sonde.conf || true
fi
END
chmod 755 "$stage/DEBIAN/postinst"
dpkg-deb --root-owner-group -Zxz -b "$stage" "$dist/$name.deb" > /dev/null
rm -r "$stage/DEBIAN"
tar -C "$stage" --sort=name --owner=0 --group=0 --mtime=@"${SOURCE_DATE_EPOCH:-$(stat -c %Y VERSION)}" -czf "$dist/$name.tar.gz" usr
rm -r "$stage"
ls "$dist"/*
