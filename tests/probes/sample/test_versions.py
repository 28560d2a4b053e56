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
from recording import Recording
from sample_lib import WORK, Stacks, allowed, python_of, shares, worst
from tap import done, ok, skip

POINTS = 5  # percentage points; a run has at least 1,000 samples


def too_far(truth, seen):
    """The lines whose error is not by chance: more than four standard deviations and a percentage point"""
    n = sum(seen.values())
    truth, seen = shares(truth), shares(seen)
    return {k: (truth.get(k, 0), seen.get(k, 0)) for k in set(truth) | set(seen)
            if abs(truth.get(k, 0) - seen.get(k, 0)) > 1 + 4 * (truth.get(k, 0) * (100 - truth.get(k, 0)) / n) ** 0.5}


def run(python):
    program = [python.exe, WORK, "cpu", "2"]
    if python.root not in ("", "/"):
        shutil.copy(WORK, os.path.join(python.root, "tmp", "sample_work.py"))
        program = ["chroot", python.root, python.exe, "/tmp/sample_work.py", "cpu", "2"]
    rec = Recording(program, "sample", ["-F", "999"])
    stacks, functions, lines, gil = Stacks(rec.trace), collections.Counter(), collections.Counter(), 0
    samples = rec.of("sample_cpu")
    for e in samples:
        stack = python_of(stacks.stack(e.get("stack", 0)))
        names = [f.name for f in stack]
        gil += e.get("gil", 0) == 1
        functions.update(n for n in ("seventy", "twenty", "ten", "constructs") if n in names)
        if "logged" in names:
            lines[stack[len(names) - 2 - names[::-1].index("logged")].line] += 1
    said = json.loads(rec.output[-1])
    off, what = worst(shares(said["functions"]), shares(functions)) if functions else (100, rec.messages)
    most = allowed(POINTS, shares(said["functions"]).get(what, 0), len(samples))
    ok(off < most, f"{python.name}: shares of functions are right within {POINTS} points, of {len(samples)} samples", f"{off:.2f} at {what}")
    truth = {int(k): v for k, v in said["lines"].items()}
    wrong = too_far(truth, lines) if lines else "nothing"
    ok(not wrong and not set(lines) - set(truth), f"{python.name}: shares of lines of multi-line constructs are right",
       f"{wrong} {set(lines) - set(truth)}")
    ok(gil > 0.95 * len(samples), f"{python.name}: the only thread holds the GIL", f"{gil} of {len(samples)}")


found, missing = gil_lib.pythons()
for name in sorted(found):
    # test_truth.py tests this version
    if name != "3.11 debian":
        run(found[name])
for name, why in sorted(missing.items()):
    skip(name, why)
done()
