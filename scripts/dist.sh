#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# dist.sh BUILD VERSION: build/dist/ with a tar to unpack in / and a .deb of what
# `make install` puts in place. Both run where there is no compiler; the .deb
# names the shared libraries it needs, the tar has that list in REQUIRES.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 version=$2
dist=$build/dist
arch=$(dpkg --print-architecture)
name=sonde_${version}_$arch
stage=$dist/stage

rm -rf "$dist"
MAKEFLAGS='' make --no-print-directory -s B="$build" install DESTDIR="$PWD/$stage" PREFIX=/usr > /dev/null
strip --strip-unneeded "$stage/usr/bin/sonde" "$stage/usr/lib/sonde/libsonde-cupti.so"
find "$stage/usr/share/man" -name '*.1' -exec gzip -9n {} + 2> /dev/null || true

mkdir "$dist/debian"
printf 'Source: sonde\n\nPackage: sonde\nArchitecture: any\n' > "$dist/debian/control"
depends=$(cd "$dist" && dpkg-shlibdeps -O stage/usr/bin/sonde 2> /dev/null | sed -n 's/^shlibs:Depends=//p')
rm -r "$dist/debian"
mkdir "$stage/DEBIAN"
cat > "$stage/DEBIAN/control" << END
Package: sonde
Version: $version
Architecture: $arch
Maintainer: The sonde authors <sonde@localhost>
Installed-Size: $(du -sk "$stage/usr" | cut -f1)
Depends: $depends
Section: devel
Priority: optional
Description: system tracer for machine learning workloads
 Attaches to what already runs (CUDA calls, the Python GIL, the
 scheduler) with eBPF and says where the time goes. Nothing is relaunched
 or modified.
END
dpkg-deb --root-owner-group -Zxz -b "$stage" "$dist/$name.deb" > /dev/null
rm -r "$stage/DEBIAN"
echo "Shared libraries this needs, as Debian packages: $depends" > "$stage/usr/share/doc/sonde/REQUIRES"
tar -C "$stage" --sort=name --owner=0 --group=0 --mtime=@"${SOURCE_DATE_EPOCH:-$(stat -c %Y VERSION)}" -czf "$dist/$name.tar.gz" usr
rm -r "$stage"
ls "$dist"/*
