#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: partly | austin, perf: deep recursion | No outermost frames behind 1,215
"""The user's own functions outside a deep recursion (`main`, `load`) are on each stack, in flame graphs too; a recursion of 3,000 calls is cut."""
from case import finish, record, say, script, start
from tap import ok

WORK = """
import sys, time
def leaf():
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
def parse(depth):
    return parse(depth - 1) if depth else leaf()
def load(depth):
    while True:
        parse(depth)
def main():
    sys.setrecursionlimit(10000)
    print("ready", flush=True)
    load(int(sys.argv[1]))
main()
"""
for depth in (200, 800, 3000):
    program = start("/usr/bin/python3", script("deep.py", WORK), str(depth), until="ready")
    path = record("-d", "2", "-p", program.pid, "-F", "99", name=str(depth))
    # one line a stack: the frames from the outermost inwards, and its weight
    stacks = [line.rsplit(" ", 1)[0].split(";") for line in say("export", path, "--to", "folded", "-o", "-").splitlines() if "leaf" in line]
    outside = ["main" in " ".join(stack) and "load" in " ".join(stack) for stack in stacks]
    cut = ["[cut]" in " ".join(stack) for stack in stacks]
    ok(stacks and all(o == (depth < 1000) for o in outside) and all(c == (depth > 200) for c in cut),
       f"functions outside a recursion of {depth} calls", stacks[:1])
    program.kill()
finish()
