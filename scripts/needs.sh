#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# needs.sh GLIBC FILE..: fails if an ELF file needs a library that is not glibc's
# or a symbol of a version of glibc that is newer than GLIBC, and names them.
set -euo pipefail
glibc=$1
shift
bad=0
for file; do
	# The loader requires all symbol versions of a program, also of symbols that are not used
	objdump -p "$file" > /dev/null
	while read -r library; do
		echo "$file needs $library, whose name or version is another elsewhere"
		bad=1
	done < <(objdump -p "$file" | sed -n 's/^ *NEEDED *//p' | grep -vE '^(lib(c|m|dl|pthread|rt)\.so\.[0-9]+|ld-linux[-a-z0-9_]*\.so\.[0-9]+)$')
	while read -r version symbol; do
		[[ $(printf '%s\n' "$version" "$glibc" | sort -V | tail -n 1) != "$glibc" ]] || continue
		echo "$file needs $symbol of glibc $version, newer than $glibc"
		bad=1
	done < <(objdump -T "$file" | sed -nE 's/.*\(?\bGLIBC_([0-9.]+)\)? +([^ ]+)$/\1 \2/p' | sort -u)
done
exit $bad
