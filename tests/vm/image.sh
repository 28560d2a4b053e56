#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# image.sh FILE: makes an ext4 image of a small root with this system's shell, Python, tools and their libraries, and
# with the parts of the tree that the guest needs, at the same path. The user space is the one that sonde was built
# with.
set -euo pipefail
cd "$(dirname "$0")/../.."
tree=$PWD build=${B:-build} image=$(realpath "$1")
root=$(mktemp -d "${image%/*}/root.XXXXXX")
trap 'rm -rf "$root"' EXIT
packages="base-files base-passwd libc-bin bash dash coreutils util-linux mount procps grep sed findutils mawk tar
	  hostname busybox-static binutils binutils-x86-64-linux-gnu"
for p in $(dpkg-query -W -f '${Package}\n' 'python3*-minimal' 'libpython3*-minimal' 'libpython3*-stdlib' 2> /dev/null) \
	python3 python3-zstandard python3-cffi-backend bpftool; do
	packages+=" $p"
done

for d in bin sbin lib lib64; do
	mkdir -p "$root/usr/$d"
	[[ ! -L /$d ]] || ln -s "usr/$d" "$root/$d"
done
mkdir -p "$root"/{dev,proc,sys,run,tmp,root,out,etc,var/tmp}
chmod 1777 "$root/tmp" "$root/var/tmp"
cp -a /etc/passwd /etc/group /etc/alternatives "$root/etc/"

put() { # PATH..: as they are here, with the names that they have here
	tar -cf - --no-recursion --ignore-failed-read "$@" 2> /dev/null | tar -xf - --keep-directory-symlink -C "$root"
}
put /usr/bin/awk # an alternative, of no package
# one by one, as a package that is not installed ends the whole list
for p in $packages; do
	dpkg-query -L "$p" 2> /dev/null || true
done | grep -vE '^/(\.|usr/share/(doc|man|locale|lintian|bug|info)(/.*)?)$|__pycache__|/(test|idlelib|lib2to3)/' |
	while read -r f; do [[ -d $f && ! -L $f ]] || echo "$f"; done | sort -u |
	tar -cf - --no-recursion --ignore-failed-read -T - 2> /dev/null | tar -xf - --keep-directory-symlink -C "$root"

# the tree: scripts and programs of tests, and the libraries that they load
to=$root$tree
mkdir -p "$to/build/gen" "$to/build/tests"
for f in tests/vm tests/probes tests/lib tests/e2e tests/workloads; do
	tar -cf - --exclude=__pycache__ "$f" | tar -xf - -C "$to"
done
cp "$build/test/sonde" "$build/libsonde-cupti.so" "$to/build/"
cp "$build"/gen/*.bpf.o "$to/build/gen/"
for f in probes workloads fakes vm; do
	[[ ! -d $build/tests/$f ]] || tar -cf - -C "$build" --exclude='*.d' "tests/$f" | tar -xf - -C "$to/build"
done
# the image has no compiler: the programs that a test would compile
mkdir -p "$to/build/tests/probes/gil/built"
includes=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
for source in gil_truth gil_hold gil_plant; do
	${CC:-cc} -O2 -shared -fPIC -I"$includes" "tests/probes/gil/built/$source.c" -o "$to/build/tests/probes/gil/built/$source.so" -ldl
done
for lib in "$build"/cuda/1[23]/lib; do
	mkdir -p "$to/build/${lib#"$build"/}"
	cp -L "$lib"/libcudart.so.1[23] "$to/build/${lib#"$build"/}/" 2> /dev/null || true
done

[[ -z ${SCRIPT:-} ]] || cp "$SCRIPT" "$root/root/script"

# the libraries of all of these
{ find "$root" -type f \( -perm -u+x -o -name '*.so*' \) -size +1k -exec ldd {} + 2> /dev/null || true; } |
	grep -oE '/[^ ]+\.so[^ ]*' | grep -vE ":\$|^$root" | sort -u | while read -r lib; do
	[[ -e $root$lib ]] || { put "$lib" && put "$(readlink -f "$lib")"; }
done
ldconfig -r "$root" 2> /dev/null || true
rm -f "$image"
truncate -s 2G "$image.new"
mke2fs -q -t ext4 -m 0 -E lazy_itable_init=1,lazy_journal_init=1 -d "$root" "$image.new"
mv "$image.new" "$image"
