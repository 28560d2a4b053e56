#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sampled CPU time of Python functions and lines, compared with the program's own measurement and with py-spy."""
# test: timeout=240
import collections
import json
import os
import re
import shutil
import subprocess
import tempfile

from recording import Recording, workdir
from sample_lib import NATIVE, WORK, Stacks, allowed, cpu_time, python_of, shares, worst
from tap import done, ok, skip

PYTHON3 = "/usr/bin/python3"
KINDS = ("seventy", "twenty", "ten", "constructs")


def measured(rec):
    """(shares of functions by total time, shares of the lines of constructs()), by samples"""
    stacks, functions, lines = Stacks(rec.trace), collections.Counter(), collections.Counter()
    deepest = gil = samples = 0
    for e in rec.of("sample_cpu"):
        samples += 1
        gil += e.get("gil", 0) == 1
        stack = python_of(stacks.stack(e.get("stack", 0)))
        names = [f.name for f in stack]
        functions.update(n for n in KINDS if n in names)
        deepest = max(deepest, names.count("recurse"))
        if "logged" in names:
            at = len(names) - 1 - names[::-1].index("logged")
            lines[stack[at - 1].line] += 1
    return functions, lines, deepest, gil, samples


def truth_of(rec):
    said = json.loads(rec.output[-1])
    return said["functions"], {int(k): v for k, v in said["lines"].items()}


def check(rec, name, points):
    functions, lines, deepest, gil, samples = measured(rec)
    truth, line_truth = truth_of(rec)
    off, what = worst(shares(truth), shares(functions))
    ok(off < allowed(points, shares(truth).get(what, 0), samples), f"{name}: shares of functions are right within {points} points, of {samples} samples",
       f"{off:.2f} at {what}; truth {shares(truth)}, seen {shares(functions)}")
    off, what = worst(shares(line_truth), shares(lines))
    ok(off < allowed(points, shares(line_truth).get(what, 0), sum(lines.values())),
       f"{name}: shares of lines of multi-line constructs are right within {points} points",
       f"{off:.2f} at line {what}\n{shares(line_truth)}\n{shares(lines)}")
    ok(not set(lines) - set(line_truth), f"{name}: no line without code has samples", set(lines) - set(line_truth))
    ok(deepest == 201, f"{name}: a recursion of 200 calls is complete", deepest)
    ok(gil > 0.98 * samples, f"{name}: the only thread holds the GIL", f"{gil} of {samples}")
    # too much CPU time would mean that samples of another thread are in the trace
    ratio, fits = cpu_time(rec.of("sample_cpu"), sum(truth.values()))
    ok(fits, f"{name}: the sampled CPU time is the program's", f"{ratio:.3f} with {samples} samples")
    return shares(functions)


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
    sonde = os.environ.get("SONDE", "build/sonde")
    p = subprocess.run([sonde, "report", path, name, "--format", "json", "-n", "0"], stdout=subprocess.PIPE)
    return json.loads(p.stdout)


def reports(path, folder):
    out = {name: report(path, name)["tables"] for name in ("python", "lines", "stacks")}
    functions = {r["function"]: r for r in out["python"]["functions"]}
    ok(functions["seventy"]["self_percent"] > 15 and functions["recurse"]["total_percent"] < 20,
       "report python: self and total time, with recursive functions counted once", functions["recurse"])
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


def py_spy():
    """(path of py-spy, None), or (None, reason) if it can't be installed"""
    found = shutil.which("py-spy")
    venv = os.path.join(os.environ.get("B", "build"), "py-spy")
    if found:
        return found, ""
    if not os.access(os.path.join(venv, "bin", "py-spy"), os.X_OK):
        for command in ([PYTHON3, "-m", "venv", venv], [os.path.join(venv, "bin", "pip"), "install", "-q", "py-spy"]):
            try:
                p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
            except (OSError, subprocess.TimeoutExpired) as e:
                return None, str(e)
            if p.returncode:
                return None, p.stdout.decode(errors="replace").strip().splitlines()[-1:]
    return os.path.join(venv, "bin", "py-spy"), ""


def spied(program):
    """(py-spy's samples by function in a run of its own, its output)"""
    out = os.path.join(workdir(), "spy")
    target = subprocess.Popen([PYTHON3, WORK, "flat", "10"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdin.write("go\n")
    target.stdin.flush()
    spy = subprocess.run([program, "record", "-p", str(target.pid), "-d", "8", "-r", "100", "-f", "raw", "-o", out],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    target.communicate()
    counts = collections.Counter()
    for line in open(out) if spy.returncode == 0 else ():
        stack, n = line.rsplit(" ", 1)
        names = [re.sub(r" \(.*", "", f) for f in stack.split(";")]
        counts.update({k: int(n) for k in KINDS if k in names})
    return counts, spy.stdout


def beside_py_spy(seen):
    """Compares shares with py-spy's, without the recursion: py-spy stops the process for longer if the stack is deeper, and overcounts it."""
    seen = shares({k: v for k, v in seen.items() if k != "ten"})
    program, why = py_spy()
    if not program:
        skip("shares of functions equal py-spy's", f"py-spy can't be installed: {why}")
        return
    # py-spy samples by the wall clock: on a loaded machine its shares vary by some points between runs
    runs = []
    for _ in range(3):
        counts, said = spied(program)
        off, what = worst(shares(counts), seen) if counts else (100, said)
        runs.append(f"{off:.2f} at {what}: {shares(counts) if counts else None}")
        if off < 3:
            break
    ok(off < 3, "shares of functions equal py-spy's within 3 points", f"{runs}, here {seen}")


# Not in the tree or in the test's own folder, which root alone may be able to enter: a report shows the source as
# another user
with tempfile.TemporaryDirectory(prefix="sonde-truth-", dir="/tmp") as folder:
    os.chmod(folder, 0o755)
    rec = Recording([PYTHON3, shutil.copy(WORK, folder), "cpu", "20"], "sample", ["-F", "499"])
    ok(rec.status == 0, "recorded", rec.messages)
    seen = check(rec, "3.11 of Debian, 499 Hz, 20 s", 2)
    native_inside(rec)
    reports(rec.path, folder)
beside_py_spy(seen)
done()
