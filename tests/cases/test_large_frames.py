#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
# case: partly | perf: functions with large frames, as mypyc makes them | 1,536 bytes of a stack are copied
"""A report says how much of the CPU time is on stacks that lack frames, and that frame pointers mend it."""
import os
import re
import subprocess

from case import FOLDER, finish, record, say, script, start
from tap import ok, skip_all

PROGRAM = script("large.c", """
#include <stdio.h>
#include <string.h>
__attribute__((noinline)) static int deep(int n)
{
	volatile char large[1024];
	volatile int x = 0;
	large[n] = n;
	if (n) return deep(n - 1) + large[n];
	for (int i = 0; i < 1000000; i++) x += i;
	return x + large[0];
}
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (;;) deep(8);
}
""")

for flag, is_right in (("-fomit-frame-pointer", lambda share: share > 95), ("-fno-omit-frame-pointer", lambda share: share < 5)):
    program = os.path.join(FOLDER, "large")
    if subprocess.run(["gcc", "-O1", "-g", "-fno-optimize-sibling-calls", flag, "-o", program, PROGRAM], capture_output=True, check=False).returncode:
        skip_all("there is no gcc")
    run = start(program, until="ready")
    text = say("report", record("-d", "1", "-F", "199", "-p", run.pid), "stacks")
    run.kill()
    share = re.search(r"(\d+)% of the CPU time is on stacks with missing frames .* frame pointers", " ".join(text.split()))
    ok(is_right(int(share[1]) if share else 0), flag, text)
finish()
