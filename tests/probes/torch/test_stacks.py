#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--torch=stacks: the Python stack of each operator and backward node is the one that torch.profiler records with with_stack: functions, files
and their first lines, from the innermost one to the workload. The profiler does not show which line of a function is executed: in one
workload each operator is called from another line. And Kineto's file has a row for each function of Python on these stacks, and for each call
of an nn.Module.
test: timeout=300 parallel"""
import collections
import json
import os
import re
import subprocess
import time

from clocks import ahead_of_monotonic
from recorded import Recorded
from recording import workdir
from tap import done, ok, skip
from torch_env import Recording, python, version_of

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = ("Training", "Attention", "Boxed", "Function", "Lines")
# of the profiler's events, those that sonde does not record or names otherwise
OTHERS = re.compile(r"autograd::engine::evaluate_function: |(detach|torch::autograd::GraphRoot|CubeBackward|Cube)$|.*(#|\(\d+\): |<built-in|nn\.Module)")
LOSS_RATE = 17
MODULE = "nn.Module: "


class Stacks:
    def __init__(self, trace):
        self.frames = {e["frame"]: e for e in trace.events("meta_frame")}
        self.codes = {e["code"]: e for e in trace.events("meta_code")}

    def of(self, number):
        """[(file, first line, function, line)] from the innermost frame"""
        found = []
        while frame := self.frames.get(number):
            code = self.codes[frame["code"]]
            found.append((code["file_text"], code["line"], code["name_text"].split(".")[-1], frame["line"]))
            number = frame["caller"]
        return found


def profilers(stack):
    """[(file, first line, function)] of a stack of the profiler's, which also has functions in C and modules"""
    found = [re.fullmatch(r"(.*)\((\d+)\): (.*)", text) for text in stack]
    return [(m[1], int(m[2]), m[3]) for m in found if m]


def below_workload(stack):
    """Without the callers of the workload, which ran already when the profiler started"""
    calls = [i for i, frame in enumerate(stack) if frame[2] == "__call__" and frame[0].endswith("workloads.py")]
    return stack[:calls[0] + 1] if calls else stack


def is_same(mine, its):
    return len(mine) == len(its) and all(m[0].endswith(i[0]) and m[1:3] == i[1:3] for m, i in zip(mine, its))


def check(truth, recorded, stacks):
    expected = collections.defaultdict(list)
    for name, stack in truth["stacks"]:
        if not OTHERS.match(name):
            expected[name].append(below_workload(profilers(stack)))
    found = collections.defaultdict(list)
    for e, name in sorted(recorded.within(truth["start"], truth["end"]), key=lambda i: i[0]["start"]):
        if e["event"] != "torch_range":
            # the profiler has "nn.Module: NAME" for a module's __call__
            stack = [frame for frame in stacks.of(e["stack"]) if frame[2] != "_wrapped_call_impl"]
            found[name].append(below_workload(stack))
    wrong, equal, depth = [], 0, set()
    for name, its in expected.items():
        mine = found[name]
        if len(mine) != len(its):
            wrong.append((name, len(mine), len(its)))
            continue
        for m, i in zip(mine, its):
            equal += is_same(m, i)
            depth.add(len(m))
            if not is_same(m, i):
                wrong.append((name, m, i))
    ok(equal and not wrong, f"{truth['name']}: the stacks of all {equal} operators and nodes are those of with_stack, up to {max(depth)} frames",
       f"{len(wrong)} differ", *wrong[:3])
    return found


def check_lines(found):
    with open(f"{HERE}/workloads.py", encoding="utf-8") as f:
        source = f.read().splitlines()
    for name in ("sin", "cos", "exp", "tan"):
        lines = collections.Counter(stack[0][3] for stack in found[f"aten::{name}"])
        ok(lines and all(f".{name}()" in source[line - 1] for line in lines), f"the line of aten::{name} is the one that calls it", lines)


def calls_by_class(counts):
    """{class: [calls of each module of this class]}; modules are numbered from the start of a recording"""
    found = collections.defaultdict(list)
    for name, calls in sorted(counts.items()):
        if name.startswith(MODULE):
            found[name[len(MODULE):].rpartition("_")[0]].append(calls)
    return {name: sorted(calls) for name, calls in found.items()}


def check_kineto(r, truths):
    """The functions in Kineto's rows are those on the profiler's stacks."""
    path = os.path.join(workdir(), "stacks.json")
    pid = next(e["pid"] for e in r.trace.events("torch_op"))
    subprocess.run([os.environ["SONDE"], "export", r.path, "--to", "kineto", "--event", str(pid), "-o", path], check=True)
    with open(path, "rb") as file:
        exported = json.load(file)
    base = exported["baseTimeNanoseconds"] - ahead_of_monotonic(time.CLOCK_REALTIME)
    functions = [(base + e["ts"] * 1000, e["dur"] * 1000, e["name"]) for e in exported["traceEvents"] if e.get("cat") == "python_function"]
    rows = [(start, length, *profilers([name])) for start, length, name in functions if not name.startswith(MODULE)]
    for truth in truths:
        expected = {frame for name, stack in truth["stacks"] if not OTHERS.match(name) for frame in below_workload(profilers(stack))}
        times = [(start, start + length, frame) for start, length, frame in rows if frame[2] != "_wrapped_call_impl"]
        found = {frame for start, end, frame in times if truth["start"] <= start and end <= truth["end"]}
        # calls that follow each other from one position are one row, which may begin before the workload is measured
        around = {frame for start, end, frame in times if start < truth["end"] and end > truth["start"]}
        missing = [e for e in expected if not any(is_same([f], [e]) for f in around)]
        more = [f for f in found if not any(is_same([f], [e]) for e in expected)]
        ok(found and not missing and not more, f"{truth['name']}: Kineto's file has the {len(expected)} functions on the profiler's stacks",
           missing[:5], more[:5])
        modules = calls_by_class(collections.Counter(name for start, _, name in functions if truth["start"] <= start < truth["end"]))
        expected = calls_by_class(truth["counts"])
        if truth["name"] not in ("Training", "Attention"):
            continue
        if not expected and version_of(python()).startswith(("2.3.", "2.6.")):
            skip(f"{truth['name']}: calls of modules", "the events of this version's torch.profiler do not have them")
        else:
            ok(expected and modules == expected, f"{truth['name']}: and a row for each call of modules: {', '.join(expected)}", modules, expected)


def main():
    program = [python(), f"{HERE}/workloads.py", "--stacks", *WORKLOADS]
    r = Recording(program, "--torch=all,stacks", "--torch-rate", "1000000")
    recorded, stacks = Recorded(r.trace, r.pid), Stacks(r.trace)
    found = {}
    truths = [json.loads(line) for line in r.output if line.startswith("{")]
    for truth in truths:
        found[truth["name"]] = check(truth, recorded, stacks)
    ok(set(found) == set(WORKLOADS), "all workloads ran", found.keys())
    check_lines(found["Lines"])
    check_kineto(r, truths)
    lost = [e for e in r.trace.events("meta_loss") if e["family"] == 0x0e and e["pid"] in (0, r.pid)]
    ok(not lost, "no record is lost", lost)
    ok(not r.changed, "after the recording the library's code in the process is that of its file", r.changed)

    r = Recording([python(), f"{HERE}/workloads.py", "Lines"], "--torch=stacks", "--torch-rate", "100")
    ops = list(r.trace.events("torch_op"))
    without = sum(not e["stack"] for e in ops)
    lost = sum(e["count"] for e in r.trace.events("meta_loss") if e["family"] == 0x0e and e["reason"] == LOSS_RATE)
    ok(0 < without < len(ops) and lost == without, "beyond --torch-rate operators have no stack, and these are counted", len(ops), without, lost)
    done()


main()
