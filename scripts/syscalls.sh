#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# syscalls.sh CC CALLS: prints a C header with the system calls of this system's headers: enum syscall_nr, and an array
# by number of what CALLS (bpf/probes/syscall/calls.txt) says about each.
# x86-64 has two further entries: 32-bit calls are numbered from 0x8000 on, x32 calls from 0x4000 on and without names.
set -e
cc=$1 calls=$2

# NUMBERS-HEADER: prints "name number" lines
numbers()
{
	echo "#include <$1>" | "$cc" -dM -E -x c - |
		awk '$2 ~ /^__NR_/ && $3 ~ /^[0-9]+$/ { sub("__NR_", "", $2); print $2, $3 }' | sort -k2,2n -k1,1
}

# PREFIX BASE: prints enumerators for the "name number" lines on stdin
enumerators()
{
	awk -v prefix="$1" -v base="$2" '$2 < 512 && !seen[$2]++ { printf "\t%s%s = %d,\n", prefix, $1, base + $2 }'
}

# MACRO: prints initializers of an array by number for the "name number" lines on stdin
traits()
{
	awk -v macro="$1" -v calls="$calls" '
	BEGIN {
		bit["fd"] = 8; bit["fdx"] = 16; bit["fd5"] = 32; bit["newfd"] = 64
		bit["path"] = 128; bit["path1"] = 256; bit["bytes"] = 512
		while ((getline line < calls) > 0) {
			n = split(line, w, /[ \t]+/)
			if (line ~ /^#/ || n < 2)
				continue
			t = w[2]
			for (i = 3; i <= n; i++)
				t += bit[w[i]]
			traits[w[1]] = t
		}
		printf "#define %s", macro
	}
	$2 < 512 && !seen[$2]++ { printf " \\\n\t[%d] = %d,", $2, $1 in traits ? traits[$1] : 4 }
	END { print "" }'
}

has()
{
	echo "#include <$1>" | "$cc" -E -x c - >/dev/null 2>&1
}

native=asm/unistd.h
if has asm/unistd_64.h; then
	native=asm/unistd_64.h
fi

# Calls by which the kernel handles a probed function's return and entry (Linux 6.11, 6.18), caused by a tracer
probes()
{
	if echo | "$cc" -dM -E -x c - | grep -q '__x86_64__ '; then
		printf 'uretprobe 335\nuprobe 336\n'
	fi
}

echo '/* made by scripts/syscalls.sh */'
echo '#pragma once'
echo 'enum syscall_nr {'
{ numbers $native; probes; } | enumerators SYS_ 0
if has asm/unistd_32.h; then
	numbers asm/unistd_32.h | enumerators SYS32_ 32768
fi
echo '};'
numbers $native | traits SYSCALL_TRAITS
if has asm/unistd_32.h; then
	numbers asm/unistd_32.h | traits SYSCALL_TRAITS_32
else
	echo '#define SYSCALL_TRAITS_32'
fi
