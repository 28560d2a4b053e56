#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# syscalls.sh CC CALLS: system calls by number, as this system's own headers have them, as a C header on stdout:
# enum syscall_nr, and what CALLS (bpf/probes/syscall/calls.txt) says of each, by number.
# x86-64 has two more ways in: 32-bit calls count from 0x8000 on, and those of x32 from 0x4000 on without names.
set -e
cc=$1 calls=$2

# NUMBERS-HEADER: "name number" a line
numbers()
{
	echo "#include <$1>" | "$cc" -dM -E -x c - |
		awk '$2 ~ /^__NR_/ && $3 ~ /^[0-9]+$/ { sub("__NR_", "", $2); print $2, $3 }' | sort -k2,2n -k1,1
}

# enumerators of "name number" on stdin: PREFIX BASE
enumerators()
{
	awk -v prefix="$1" -v base="$2" '$2 < 512 && !seen[$2]++ { printf "\t%s%s = %d,\n", prefix, $1, base + $2 }'
}

# initializers of an array by number, of "name number" on stdin: MACRO
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

# What the kernel makes of a probed function's return and entry (Linux 6.11, 6.18): a tracer's calls, in the program's threads
probes()
{
	if echo | "$cc" -dM -E -x c - | grep -q '__x86_64__ '; then
		printf 'uretprobe 335\nuprobe 336\n'
	fi
}

echo '/* made by scripts/syscalls.sh */'
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
