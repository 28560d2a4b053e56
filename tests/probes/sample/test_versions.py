#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""test_truth.py in a shorter form, on every CPython."""
# test: timeout=240
import collections
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
from bounds import distribution
from recording import Recording
from sample_lib import WORK, Stacks, python_of
from tap import done, ok, skip

KINDS = ("seventy", "twenty", "ten", "constructs")


def run(python):
    program = [python.exe, WORK, "cpu", "4"]
    if python.root not in ("", "/"):
        shutil.copy(WORK, os.path.join(python.root, "tmp", "sample_work.py"))
        program = ["chroot", python.root, python.exe, "/tmp/sample_work.py", "cpu", "4"]
    rec = Recording(program, "sample", ["-F", "999"])
    stacks, functions, lines, without_gil = Stacks(rec.trace), collections.Counter(), collections.Counter(), 0
    for e in rec.of("sample_cpu"):
        stack = python_of(stacks.stack(e.get("stack", 0)))
        names = [f.name for f in stack]
        mine = [n for n in KINDS if n in names]
        functions.update(mine)
        without_gil += bool(mine) and e.get("gil", 0) != 1
        if "logged" in names:
            lines[stack[len(names) - 2 - names[::-1].index("logged")].line] += 1
    said = json.loads(rec.output[-1])
    distribution(f"{python.name}: shares of functions", functions, said["functions"], rec.messages)
    distribution(f"{python.name}: shares of lines of multi-line constructs", lines, {int(k): v for k, v in said["lines"].items()})
    ok(not without_gil, f"{python.name}: the only thread holds the GIL", f"{without_gil} of {sum(functions.values())} do not")


found, missing = gil_lib.pythons()
for name in sorted(found):
    # test_truth.py tests this version
    if name != "3.11 debian":
        run(found[name])
for name, why in sorted(missing.items()):
    skip(name, why)
done()
