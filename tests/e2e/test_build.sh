#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The build: nothing is built twice, a duplicate id and a missing package are reported, install and dist are complete.
# test: timeout=300 parallel
set -uo pipefail
cd "${ROOT:-$(dirname "$0")/../..}" || exit
unset MAKELEVEL MAKEFLAGS
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=tests/lib/tap.sh
. "${ROOT:-.}/tests/lib/tap.sh"

make -s > "$tmp/log" 2>&1
quiet() { make > "$tmp/said" 2>&1 && ! [[ -s $tmp/said ]]; }
check "a second make does nothing" quiet

make -s install DESTDIR="$tmp/dest" PREFIX=/usr > "$tmp/log" 2>&1
check "install puts the program and its man page under DESTDIR and PREFIX" \
	test -x "$tmp/dest/usr/bin/sonde" -a -s "$tmp/dest/usr/share/man/man1/sonde.1"
# A user's compiler may be newer than the tested ones and print more warnings
commands() { env -u WERROR make -n V=1 B="$tmp/werror" "$@"; }
lenient() { commands all checks > "$tmp/said" && grep -q -- '-Wall.*user/main.c' "$tmp/said" && ! grep -e -Werror "$tmp/said"; }
check "a warning does not stop make" lenient
strict() { commands all checks WERROR=1 | grep -- '-Wall.* -c ' > "$tmp/said" && ! grep -ve -Werror "$tmp/said"; }
check "with WERROR=1 every warning is an error" strict

# The programs of make dist must run with older glibcs
needs() { # EXPECTED C-SOURCE LIBRARY..: needs.sh refuses the program with this message
	local expected=$1
	echo "$2" | cc -fno-builtin -Wno-implicit-function-declaration -Wl,--no-as-needed -x c - "${@:3}" -o "$tmp/needs" &&
		{ ! scripts/needs.sh 2.34 "$tmp/needs" > "$tmp/said"; } && cat "$tmp/said" && grep -q "$expected" "$tmp/said"
}
check "needs.sh refuses a function of a newer glibc" needs 'arc4random of glibc 2.36' 'int main(void) { return arc4random(); }'
check "needs.sh refuses a library that is not glibc's" needs 'needs libz.so.1' 'int main(void) { return 0; }' -lz
check "the shim needs no more than glibc 2.17" scripts/needs.sh 2.17 build/libsonde-cupti.so

check "the installed program runs in any directory" env -C / "$tmp/dest/usr/bin/sonde" list events

# Other programs' files in the same folders stay
touch "$tmp/dest/usr/share/man/man1/other.1" "$tmp/dest/usr/bin/other"
make -s uninstall DESTDIR="$tmp/dest" PREFIX=/usr > "$tmp/log" 2>&1
left() {
	find "$tmp/dest" ! -type d ! -name 'other*' -print
	find "$tmp/dest" -name '*sonde*' -print
}
uninstalled() { [[ -f $tmp/dest/usr/bin/other && -f $tmp/dest/usr/share/man/man1/other.1 ]] && { left | tee "$tmp/said"; ! [[ -s $tmp/said ]]; }; }
check "uninstall removes all of sonde's files and no others" uninstalled

# A distribution without dpkg and with no build tools
mkdir "$tmp/bin"
for tool in bash cat dirname; do ln -s "$(command -v $tool)" "$tmp/bin/"; done
env -i PATH="$tmp/bin" bash scripts/deps.sh build > "$tmp/said" 2>&1
check "on another distribution deps.sh prints the required packages" grep -q 'by hand first: make cc clang' "$tmp/said"

# Debian without a required package, as an unprivileged user
printf '#!/bin/sh\nexit 1\n' > "$tmp/bin/dpkg-query"
chmod +x "$tmp/bin/dpkg-query"
for tool in sort grep sed; do ln -s "$(command -v $tool)" "$tmp/bin/"; done
chmod 755 "${TMPDIR:-$tmp}" "$tmp" "$tmp/bin"
cp scripts/deps.sh "$tmp/"
if ((EUID == 0)); then
	setpriv --reuid 65534 --clear-groups env -i PATH="$tmp/bin" "$tmp/bin/bash" "$tmp/deps.sh" build > "$tmp/said" 2>&1
	check "for an unprivileged user deps.sh prints the command that installs the missing packages" \
		grep -q 'As root: apt-get install .*libbpf-dev' "$tmp/said"
fi

# An event whose id is another event's
mkdir "$tmp/twice"
sed 's/0x3f01/0x0301/' tests/e2e/new_family/tiny/tiny.h > "$tmp/twice/tiny.h"
cp tests/e2e/new_family/tiny/tiny.bpf.c "$tmp/twice/"
twice() { ! tests/e2e/build_with.sh "$tmp/build" "$tmp/twice" > "$tmp/said" 2>&1 && grep -qi '0x0301' "$tmp/said"; }
check "an id used twice fails the build" twice
# A family whose id is beyond the bound
sed 's/0x3f/0x40/' tests/e2e/new_family/tiny/tiny.h > "$tmp/twice/tiny.h"
great() { ! tests/e2e/build_with.sh "$tmp/build" "$tmp/twice" > "$tmp/said" 2>&1 && grep -q 'family tiny: its id 0x40 is not less' "$tmp/said"; }
check "a family id beyond the bound fails the build" great
done_testing
