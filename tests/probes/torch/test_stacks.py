#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--torch=stacks: the Python stack of each operator and backward node is the one that torch.profiler records with with_stack: functions, files
and their first lines, from the innermost one to the workload. The profiler does not show which line of a function is executed: in one
workload each operator is called from another line.
test: timeout=300"""
import collections
import json
import os
import re

from recorded import Recorded
from tap import done, ok
from torch_env import Recording, python

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = ("Training", "Attention", "Boxed", "Function", "Lines")
# of the profiler's events, those that sonde does not record or names otherwise
OTHERS = re.compile(r"autograd::engine::evaluate_function: |(detach|torch::autograd::GraphRoot|CubeBackward|Cube)$|.*(#|\(\d+\): |<built-in|nn\.Module)")
LOSS_RATE = 17


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


def main():
    program = [python(), f"{HERE}/workloads.py", "--stacks", *WORKLOADS]
    r = Recording(program, "--torch=all", "--torch=stacks", "--torch-rate", "1000000")
    recorded, stacks = Recorded(r.trace, r.pid), Stacks(r.trace)
    found = {}
    for truth in map(json.loads, (line for line in r.output if line.startswith("{"))):
        found[truth["name"]] = check(truth, recorded, stacks)
    ok(set(found) == set(WORKLOADS), "all workloads ran", found.keys())
    check_lines(found["Lines"])
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
