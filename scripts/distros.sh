#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# distros.sh [--fetch] [SUITE..]: tests sonde in new roots of Debian 12, 13 and sid, or of
# the named suites. Installs, uses and removes the .deb and the tar of build/dist/ in a
# root with only the distribution's base, without a compiler. Then runs `make`, the
# smoke tests and `make install` with the distribution's own compilers and libraries.
# Ends with a table of roots and seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/roots.sh
own_namespace "$@"
fetch=
[[ ${1:-} != --fetch ]] || fetch=$1
[[ -z $fetch ]] || shift
(($#)) || set -- bookworm trixie sid
find_mirror
# --fetch only downloads the archives of the roots, so that a caller can do this in parallel to other work
for suite in ${fetch:+"$@"}; do
	new_root "$suite" "$work/$suite" || echo "$suite could not be had"
	rm -rf --one-file-system "${work:?}/$suite"
done
[[ -z $fetch ]] || exit 0

step() { # NAME ROOT COMMAND: check(), and a cell of the table
	local began=$SECONDS before=$failed
	check "$suite: $1" "$2" "$3"
	((failed == before)) && row+=$(printf ' %10s' "$((SECONDS - began)) s") || row+=$(printf ' %10s' FAILED)
}

packages() { # in a small root
	local bare=$work/$suite-bare
	new_root "$suite" "$bare" || return
	mounts "$bare"
	cp build/dist/sonde_*.deb build/dist/sonde_*.tar.gz "$bare/tmp/"
	step "the .deb" "$bare" "dpkg -i /tmp/sonde_*.deb && dpkg -L sonde > /tmp/files && $use && dpkg -P sonde &&
		while read -r f; do [[ -d \$f && \$f != *sonde* || ! -e \$f ]] || exit 1; done < /tmp/files"
	step "the tar" "$bare" "tar -C / -xzf /tmp/sonde_*.tar.gz && $use && cd / && tar -tzf /tmp/sonde_*.tar.gz | grep -v '/\$' | xargs rm"
}

sources() { # with a compiler
	local root=$work/$suite-root
	new_root "$suite" "$root" || return
	copy_tree "$root/root/sonde"
	mounts "$root"
	mkdir -p "build/roots/$suite-packages/partial" "$root/var/cache/apt/archives"
	mount --bind "build/roots/$suite-packages" "$root/var/cache/apt/archives"
	step "packages" "$root" "apt-get update -qq; cd /root/sonde && scripts/deps.sh build smoke && cc --version && clang --version && python3 --version"
	lend_ccache "$root"
	step "make" "$root" "cd /root/sonde && make"
	mount_tracing "$root"
	SHOW=1 step "smoke" "$root" "cd /root/sonde && make test T=smoke"
	# PORTABLE=1 if possible: Debian 13's libdw.a lacks some of its functions (eu_tsearch)
	step "install" "$root" "cd /root/sonde && make install DESTDIR=/tmp/a && /tmp/a/usr/local/bin/sonde list events > /dev/null &&
		if [[ $suite == bookworm ]]; then make install PORTABLE=1 DESTDIR=/tmp/b && /tmp/b/usr/local/bin/sonde list events > /dev/null; fi"
}

table=$(printf '%-10s %10s %10s %10s %10s %10s %10s' root .deb tar packages make smoke install)
for suite; do
	row=$(printf '%-10s' "$suite")
	if packages && sources; then
		table+=$'\n'$row
	else
		echo "Skipped: $suite, whose packages could not be had"
		skipped=$((skipped + 1))
	fi
done
echo "$table"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
