#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | perf, bpftrace: code that a program has moved to large pages (node, Chromium, hugify) has no file |
"""Functions of a program that has copied its code to memory without a file, all of it or some pages, have their names, stacks and file."""
import subprocess

from case import FOLDER, finish, record, say, script, start
from tap import ok

source = script("moved.c", r"""#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) unsigned long hot(unsigned long x) { for (int i = 0; i < 1000; i++) x = x * 31 + 7; return x; }
__attribute__((noinline)) unsigned long outer(unsigned long x) { return hot(x) + 1; }
int main(int argc, char **argv)
{
	volatile unsigned long x = argc;
	unsigned long from, to;
	char line[512], *copy;
	FILE *f = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), f))
		if (strstr(line, " r-xp ") && strstr(line, argv[0]))
			break;
	sscanf(line, "%lx-%lx", &from, &to);
	if (argv[1][0] == 'p') { /* the page of outer() alone */
		from = (unsigned long)outer & -4096;
		to = from + 4096;
	}
	copy = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(copy, (void *)from, to - from);
	mprotect(copy, to - from, PROT_READ | PROT_EXEC);
	if (mremap(copy, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, from) == MAP_FAILED)
		return 1;
	puts("ready");
	fflush(stdout);
	for (;;)
		x = outer(x);
}
""")
program = FOLDER + "/moved"
subprocess.run(["gcc", "-O1", "-fno-optimize-sibling-calls", "-o", program, source], check=True)
for what in "all", "page":
    moved = start(program, what, until="ready")
    with open(f"/proc/{moved.pid}/maps", encoding="ascii") as f:
        ok(any(" r-xp 00000000 00:00 0 \n" in line for line in f), f"{what}: the code is memory without a file")
    folded = say("export", record("-d", 1, "-F", 199, "-p", moved.pid), "--to", "folded")
    total = right = 0
    for line in folded.splitlines():
        stack, _, n = line.rpartition(" ")
        total += int(n)
        right += int(n) * (";main (moved);outer (moved);hot (moved)" in stack)
    ok(right > 0.9 * total, f"{what}: functions and their callers by name", folded)
    moved.kill()
finish()
