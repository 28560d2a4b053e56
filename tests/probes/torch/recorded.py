# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The operators, backward nodes and ranges of one process in a trace, by the names that torch.profiler prints."""
import collections
import re

from tap import ok

# Of the profiler's events: the engine's own steps, the function `detach`, functions of TorchScript, and
# autograd.Functions of Python, whose backward nodes all have the class PyNode here
OTHERS = re.compile(r"autograd::engine::evaluate_function: |(detach|\[memory\]|torch::autograd::GraphRoot|body|Cube)$")


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
        # the library in the process names classes as operators
        classes = boxed | {e["vtable"]: class_name(e["name"]) for e in of("torch_class")}
        self.ops = of("torch_op")
        self.nodes = of("torch_node")
        self.named = [(e, boxed.get(e["handle"], "?") if e["handle"] else probes[e["probe"]].split(".")[0]) for e in self.ops]
        self.named += [(e, classes.get(e["vtable"], "?")) for e in self.nodes]
        self.named += [(e, e["name"]) for e in of("torch_range")]

    def within(self, start, end):
        return [(e, name) for e, name in self.named if start <= e["start"] < end]


def differences(found, expected):
    """Lines about the names whose counts differ from torch.profiler's, which may lack any of the names that OTHERS matches."""
    found = collections.Counter(found)
    expected = {n: c for n, c in expected.items() if not OTHERS.match(n)}
    return [f"{n}: {found[n]} recorded, {expected.get(n, 0)} by torch.profiler" for n in sorted({*found, *expected})
            if found[n] != expected.get(n, 0)]


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


def check_sequences(version, events, truth):
    """Backward nodes have the numbers that torch.profiler counts, and one operator each has made them."""
    nodes = [e for e, _ in events if e["event"] == "torch_node"]
    numbered = [e for e in nodes if e["sequence"] >= 0]
    ok(len(numbered) == truth["sequences"] > 0, f"{version}: nodes have the profiler's sequence numbers, or none",
       len(numbered), truth["sequences"])
    made = collections.Counter(e["sequence"] for e, _ in events if e["event"] == "torch_op" and e["sequence"] >= 0)
    joined = sum(e["sequence"] in made for e in numbered)
    ok(joined == len(numbered) and set(made.values()) == {1}, f"{version}: each numbered node is joined with the operator that made it",
       f"{joined} of {len(numbered)}")
