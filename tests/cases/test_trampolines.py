#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | perf, py-spy: CPython's -X perf puts a piece of code between each two functions |
"""With `-X perf` stacks of samples have each Python function once, as without it, and native ones below the function that calls them."""
import glob
import os

from case import finish, record, say, script, start
from tap import ok, skip_all

PYTHONS = glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[2-9]*/bin/python3.1[2-9]"))
if not PYTHONS:
    skip_all("needs a CPython from 3.12 on, in pyenv")
work = script("work.py", """import zlib
def inner(data):
    return zlib.compress(data, 9)
def outer():
    while True:
        sorted([b"x" * 20000] * 3, key=inner)
print("ready", flush=True)
outer()
""")
for python in PYTHONS:
    program = start(python, "-X", "perf", work, until="ready")
    folded = say("export", record("-d", 2, "-F", 199, "-p", program.pid), "--to", "folded")
    stacks = [line.rpartition(" ") for line in folded.splitlines()]
    total = sum(int(n) for _, _, n in stacks)
    native = sum(int(n) for stack, _, n in stacks
                 if stack.startswith(f"work.py {program.pid};<module> (work.py);outer (work.py);inner (work.py);zlib_compress"))
    ok(native > total * 0.9, f"{os.path.basename(python)}: stacks of zlib are below inner", folded)
    # a sample in such a piece, some ten instructions of a call, has its name from the perf map as the innermost frame
    inside = sum(int(n) for stack, _, n in stacks if "py::" in stack.rpartition(";")[2])
    ok(not any("py::" in stack.rpartition(";")[0] for stack, _, _ in stacks) and inside < 0.02 * total, "the pieces are not between functions", folded)
    ok(not any(stack.count("(work.py)") > 3 for stack, _, _ in stacks), "each function is there once", folded)
    program.kill()
finish()
