#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Operators, backward nodes and ranges of ten ways to use PyTorch (workloads.py), by name as often as torch.profiler counts them in the same
calls. What the profiler shows that is none of these is named in OTHERS.
test: timeout=600"""
import collections
import json
import os
import re

from tap import done, ok
from torch_env import Recording, python

HERE = os.path.dirname(os.path.abspath(__file__))
UNWOUND = 16
# Of the profiler's events: the engine's own steps, the function `detach`, functions of TorchScript, and autograd.Functions
# of Python, whose backward nodes all have the class PyNode here
OTHERS = re.compile(r"autograd::engine::evaluate_function: |(detach|\[memory\]|torch::autograd::GraphRoot|body|Cube)$")
PYTHON_NODE, NAME_IN_PYTHON = "torch::autograd::PyNode", "CubeBackward"


def class_name(mangled):
    """The class that torch.profiler prints: for N5torch8autograd9generated14AddmmBackward0E AddmmBackward0."""
    parts = []
    rest = mangled.lstrip("N")
    while m := re.match(r"(\d+)(.*)", rest):
        n = int(m[1])
        parts.append(m[2][:n])
        rest = m[2][n:]
    return parts[-1] if "generated" in parts else "::".join(parts)


class Recorded:
    def __init__(self, trace, pid):
        of = lambda kind: [e for e in trace.events(kind) if e["pid"] == pid]  # noqa: E731
        probes = {e["number"]: e["name_text"] for e in trace.events("meta_probe")}
        boxed = {e["handle"]: e["name"] for e in of("torch_operator")}
        classes = {e["vtable"]: class_name(e["name"]) for e in of("torch_class")}
        self.ops = of("torch_op")
        self.nodes = of("torch_node")
        self.named = [(e, boxed.get(e["handle"], "?") if e["handle"] else probes[e["probe"]].split(".")[0]) for e in self.ops]
        self.named += [(e, classes.get(e["vtable"], "?")) for e in self.nodes]
        self.named += [(e, e["name"]) for e in of("torch_range")]

    def within(self, start, end):
        return [(e, name) for e, name in self.named if start <= e["start"] < end]


def check_nesting(name, events):
    """Calls of a thread lie within each other or one after the other, and `inner` is the number of those within."""
    threads = collections.defaultdict(list)
    for e in events:
        threads[e["tid"]].append(e)
    wrong = 0
    for calls in threads.values():
        calls.sort(key=lambda e: (e["start"], -e["time"]))
        open_calls = []
        found = {}
        for e in calls:
            while open_calls and open_calls[-1]["time"] <= e["start"]:
                open_calls.pop()
            wrong += bool(open_calls) and e["time"] > open_calls[-1]["time"]
            for outer in open_calls:
                found[id(outer)] += 1
            found[id(e)] = 0
            open_calls.append(e)
        wrong += sum(found[id(e)] != e["inner"] for e in calls)
    ok(not wrong, f"{name}: calls are nested, and the number of calls within each is right", wrong)


def check(truth, recorded):
    name, events = truth["name"], recorded.within(truth["start"], truth["end"])
    expected = {n: c for n, c in truth["counts"].items() if not OTHERS.match(n)}
    got = collections.Counter(NAME_IN_PYTHON if n == PYTHON_NODE else n for _, n in events)
    if name == "Threads":
        got = {n: got[n] for n in expected}
    wrong = [f"{n}: {got.get(n, 0)} recorded, {expected.get(n, 0)} by torch.profiler" for n in sorted({*got, *expected})
             if got.get(n, 0) != expected.get(n, 0)]
    ok(expected and not wrong, f"{name}: {len(expected)} names as often as torch.profiler counts them ({sum(expected.values())})",
       "\n".join(wrong))
    calls = [e for e, _ in events if "inner" in e]
    check_nesting(name, calls)
    return events


def main():
    r = Recording([python(), f"{HERE}/workloads.py"], "--torch=all")
    truths = {t["name"]: t for t in map(json.loads, (line for line in r.output if line.startswith("{")))}
    ok(len(truths) == 10 and not r.status, "all workloads ran", r.messages if r.status else "", len(truths))
    if not ok("given up" not in r.messages, "libtorch_cpu is probed", r.messages):
        done()
    recorded = Recorded(r.trace, r.pid)
    events = {name: check(truth, recorded) for name, truth in truths.items()}
    lost = [e for e in r.trace.events("meta_loss") if e["family"] == 0x0e and e["pid"] in (0, r.pid)]
    ok(not lost, "no record is lost", lost)
    ok(not r.changed, "after the recording the library's code in the process is that of its file", r.changed)

    flags = collections.Counter((n, e["flags"]) for e, n in events["Raises"])
    raised = flags["aten::mm", UNWOUND], flags["aten::einsum", UNWOUND]
    ok(raised == (200, 200) and {f for _, f in flags} == {0, UNWOUND},
       "operators that raise are marked so, those within and around them, too", raised, flags)
    for name in truths.keys() - {"Raises"}:
        other = [(n, e["flags"]) for e, n in events[name] if e["flags"]]
        ok(not other, f"{name}: every call returned", other[:5])
    ok(len({e["tid"] for e, _ in events["Threads"]}) >= 4, "calls of threads are theirs")

    nodes = [e for e, _ in events["Training"] if e["event"] == "torch_node"]
    numbered = [e for e in nodes if e["sequence"] >= 0]
    ok(len(numbered) == truths["Training"]["sequences"] > 0, "nodes have the profiler's sequence numbers, or none",
       len(numbered), truths["Training"]["sequences"])
    made = collections.Counter(e["sequence"] for e, _ in events["Training"] if e["event"] == "torch_op" and e["sequence"] >= 0)
    joined = sum(e["sequence"] in made for e in numbered)
    ok(joined == len(numbered) and set(made.values()) == {1}, "each numbered node is joined with the operator that made it",
       f"{joined} of {len(numbered)}")
    done()


main()
