#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions of Python in Kineto's format, of programs that are made up at random: functions call each other, operators, operators that call Python
again, and ranges; some stacks are missing. All spans of a thread nest, the rows around an operator are the functions on its stack, and there are as many
rows as calls that the stacks can tell apart. And of traces with stacks that contradict each other, no function is in the file that no stack has.
test: smoke parallel"""
import json
import os
import random
import subprocess
import tempfile

from planted import SONDE, make
from tap import done, ok

PROGRAMS, CALLS, DEPTH = 60, 150, 12
PID = 4711


class Program:
    """A program that runs on a clock of us; .calls are (start, end, stack, is range), a stack a tuple of (function, line of the call)."""

    def __init__(self, seed):
        self.random, self.now, self.calls, self.left = random.Random(seed), 0, [], CALLS
        while self.left > 0:
            self.function([], 0)

    def tick(self):
        self.now += self.random.randint(2, 40)

    def function(self, callers, within):
        """A call of a function. `callers` are (function, line); within is how many calls of PyTorch it is in."""
        me = self.random.randrange(6)
        for _ in range(self.random.randint(1, 4)):
            self.line(callers, me, within)

    def line(self, callers, me, within):
        """Runs a line: it calls a function or an operator, or is in a range. No line does both, and none calls two operators that call Python."""
        self.tick()
        self.left -= 1
        kind, number = self.random.random(), self.random.randint(1, 3)
        function, operator = [*callers, (me, number)], [*callers, (me, 1000 + self.left)]
        if kind < 0.45 and len(function) < DEPTH and self.left > 0:
            self.function(function, within)
        elif kind < 0.6:
            self.call([], lambda: self.line(callers, me, within), is_range=True)
        elif kind < 0.75 and within < 3:
            self.call(operator, lambda: self.function(operator, within + 1))
        else:
            self.call(operator, lambda: None)

    def call(self, stack, inner, is_range=False):
        start = self.now
        self.tick()
        inner()
        self.tick()
        known = self.random.random() < 0.8
        self.calls.append((start, self.now, tuple(stack) if known else (), is_range))
        self.tick()


def events(calls):
    """The lines of a trace with these calls of one thread"""
    frames = {}
    lines = [f"proc_task time=@0 pid={PID} tid={PID} ppid=1", 'meta_probe time=@0 number=1 name="aten::mm" program="torch_op" section="-" family=14']
    lines += [f'meta_code time=@0 code={f + 1} name="C.f{f}" file="/app/f.py" line={10 * f} kind=FRAME_PYTHON' for f in range(6)]
    for start, end, stack, is_range in calls:
        number = 0
        for function, line in stack:
            key = (number, function, line)
            if key not in frames:
                frames[key] = len(frames) + 1
                lines.append(f"meta_frame time=@0 frame={frames[key]} caller={number} code={function + 1} line={line} kind=FRAME_PYTHON")
            number = frames[key]
        kind, more = ("torch_range", 'name="r"') if is_range else ("torch_op", f"probe=1 sequence=-1 stack={number}")
        lines.append(f"{kind} pid={PID} tid={PID} start=@1.{start:06} time=@1.{end:06} {more}")
    return [*lines, "meta_end time=@3 reason=END_SIGNAL"]


def export(folder, name, calls):
    """The spans of the exported trace as (start, end, name, category, arguments) in ns, the outer before the inner ones"""
    path, out = make(folder, name, events(calls), "torch.schema.json", "proc,torch"), os.path.join(folder, name + ".json")
    subprocess.run([SONDE, "export", path, "--to", "kineto", "--event", str(PID), "-o", out], check=True)
    with open(out, encoding="utf-8") as file:
        exported = json.load(file, parse_float=str)["traceEvents"]
    spans = []
    for e in exported:
        if e["ph"] == "X":
            start = int(e["ts"].replace(".", ""))
            spans.append((start, start + int(e["dur"].replace(".", "")), e["name"], e["cat"], e["args"], e["tid"]))
    return sorted(spans, key=lambda s: (s[0], -s[1]))


def count_rows(calls):
    """Rows that the stacks tell apart: a function is the same as before if its callers are, at the same lines."""
    rows, before = 0, []
    for _, _, stack, _ in sorted(c for c in calls if c[2]):
        now = [(function, stack[i - 1][1] if i else 0) for i, (function, _) in enumerate(stack)]
        common = next((i for i, (a, b) in enumerate(zip(now, before)) if a != b), min(len(now), len(before)))
        rows += len(now) - common
        before = now
    return rows


def check_program(folder, seed):
    """What is wrong with the rows of a program"""
    calls = Program(seed).calls
    spans = export(folder, f"program{seed}", calls)
    wrong, around = [], []
    known = iter(sorted(c for c in calls if not c[3]))
    for span in spans:
        while around and around[-1][1] <= span[0]:
            around.pop()
        if span[5] != PID or (around and around[-1][1] < span[1]):
            wrong.append(("crosses", span, around[-1:]))
        rows = [s for s in around if s[3] == "python_function"]
        if span[3] == "cpu_op":
            expected = [f"/app/f.py({10 * f}): f{f}" for f, _ in next(known)[2]]
            if expected and [s[2] for s in rows] != expected:
                wrong.append(("stack", span, rows, expected))
        elif span[3] == "python_function" and span[4]["Python parent id"] != (rows[-1][4]["Python id"] if rows else None):
            wrong.append(("parent", span, rows[-1:]))
        around.append(span)
    rows = sum(span[3] == "python_function" for span in spans)
    if rows != count_rows(calls):
        wrong.append(("rows", rows, count_rows(calls)))
    return rows, wrong


def check_contradictions(folder, seed):
    """Calls with stacks that have nothing to do with each other"""
    calls = [(s, e, () if r else tuple((random.randrange(6), random.randint(1, 3)) for _ in range(len(t))), r) for s, e, t, r in Program(seed).calls]
    spans = export(folder, f"wrong{seed}", calls)
    names = {f"/app/f.py({10 * f}): f{f}" for c in calls for f, _ in c[2]}
    rows = [s for s in spans if s[3] == "python_function"]
    return rows and {s[2] for s in rows} <= names and len(spans) == len(calls) + len(rows) and all(s[0] <= s[1] for s in rows)


def main():
    with tempfile.TemporaryDirectory() as folder:
        results = [check_program(folder, seed) for seed in range(PROGRAMS)]
        wrong = [(seed, *w) for seed, result in enumerate(results) for w in result[1]]
        rows = sum(result[0] for result in results)
        ok(rows > 10 * PROGRAMS and not wrong, f"{PROGRAMS} programs: {rows} rows nest and are the stacks of their operators", len(wrong), *wrong[:3])
        random.seed(1)
        ok(all(check_contradictions(folder, seed) for seed in range(10)), "stacks that contradict each other are exported, too")
    done()


main()
