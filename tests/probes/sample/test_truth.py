#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sampled CPU time of Python functions and lines, compared with the program's own measurement."""
# test: timeout=240
import collections
import json
import os
import shutil
import subprocess
import tempfile

from bounds import distribution
from recording import Recording
from sample_lib import NATIVE, WORK, Stacks, cpu_time, python_of
from tap import done, ok

PYTHON3 = "/usr/bin/python3"
KINDS = ("seventy", "twenty", "ten", "constructs")


def measured(rec):
    """(samples by function that is on the stack, by line of constructs(), the deepest recursion, samples in KINDS without the GIL)"""
    stacks, functions, lines = Stacks(rec.trace), collections.Counter(), collections.Counter()
    deepest = without_gil = 0
    for e in rec.of("sample_cpu"):
        stack = python_of(stacks.stack(e.get("stack", 0)))
        names = [f.name for f in stack]
        functions.update({*names} & {*KINDS, "recurse"})
        without_gil += e.get("gil", 0) != 1 and any(n in names for n in KINDS)
        deepest = max(deepest, names.count("recurse"))
        if "logged" in names:
            at = len(names) - 1 - names[::-1].index("logged")
            lines[stack[at - 1].line] += 1
    return functions, lines, deepest, without_gil


def check(rec, name):
    functions, lines, deepest, without_gil = measured(rec)
    said = json.loads(rec.output[-1])
    kinds = {k: functions[k] for k in KINDS}
    distribution(f"{name}: shares of functions", kinds, said["functions"])
    distribution(f"{name}: shares of lines of multi-line constructs", lines, {int(k): v for k, v in said["lines"].items()})
    ok(deepest == 201, f"{name}: a recursion of 200 calls is complete", deepest)
    ok(not without_gil, f"{name}: the only thread holds the GIL", f"{without_gil} of {sum(kinds.values())} do not")
    # too much CPU time would mean that samples of another thread are in the trace
    cpu_time(f"{name}: the sampled CPU time is the program's", rec, sum(kinds.values()), sum(said["functions"].values()))
    return functions


def native_inside(rec):
    stacks, wrong = Stacks(rec.trace), collections.Counter()
    for e in rec.of("sample_cpu"):
        stack = stacks.stack(e.get("stack", 0))
        if not any(f.kind == NATIVE for f in stack) or not python_of(stack):
            continue
        # frames further inward than Python's are those that Python called
        wrong.update(f.name for f in stack if f.kind == NATIVE and f.name in ("main", "Py_RunMain", "Py_BytesMain", "_PyEval_EvalFrameDefault"))
        first = next(i for i, f in enumerate(stack) if f.kind == NATIVE)
        wrong["python above native"] += any(f.kind != NATIVE for f in stack[first:])
    ok(not +wrong, "native frames are those called by the innermost Python function", wrong)


def report(path, name):
    sonde = os.environ.get("SONDE", "build/test/sonde")
    p = subprocess.run([sonde, "report", path, name, "--format", "json", "-n", "0"], stdout=subprocess.PIPE)
    return json.loads(p.stdout)


def reports(path, folder, seen):
    out = {name: report(path, name)["tables"] for name in ("python", "lines", "stacks")}
    functions = {r["function"]: r for r in out["python"]["functions"]}
    totals = {name: functions[name]["total_samples"] for name in seen}
    ok(totals == seen, "report python: total time, with recursive functions counted once", totals, seen)
    ok(functions["seventy"]["samples"] == seen["seventy"], "report python: self time", functions["seventy"], seen["seventy"])
    lines = [r for r in out["lines"]["lines"] if r["function"] == "seventy"]
    ok(any(r["source"] == "x += i * i" for r in lines), "report lines: it has the source", lines)
    # The report gives up root's rights before it reads the trace, and no other user may enter such a folder
    os.chmod(folder, 0)
    hidden = report(path, "lines")
    os.chmod(folder, 0o755)
    lines = [r for r in hidden["tables"]["lines"] if r["function"] == "seventy"]
    ok(lines and not any(r["source"] for r in lines) and "can't be read here" in " ".join(hidden["notes"]),
       "report lines: a file that its user may not read is reported, and its source is not shown", (lines, hidden["notes"]))
    ok(any(";seventy" in r["stack"] for r in out["stacks"]["stacks"]), "report stacks: folded output", out["stacks"]["stacks"][:2])


# Not in the tree or in the test's own folder, which root alone may be able to enter: without the source in the trace
# a report reads it as another user
with tempfile.TemporaryDirectory(prefix="sonde-truth-", dir="/tmp") as folder:
    os.chmod(folder, 0o755)
    rec = Recording([PYTHON3, shutil.copy(WORK, folder), "cpu", "10"], "sample", ["-F", "999", "--no-source"], limit=150)
    ok(rec.status == 0, "recorded", rec.messages)
    seen = check(rec, "3.11 of Debian")
    native_inside(rec)
    reports(rec.path, folder, seen)
done()
