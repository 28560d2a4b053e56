#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Eleven programs use PyTorch in different ways (workloads.py). sonde records as many operators, backward nodes and ranges of each name as
torch.profiler counts in the same calls. Other names that the profiler has match OTHERS. SONDE_TORCH_PYTHON may list several Pythons.
test: timeout=600 parallel"""
import collections
import json
import os

from recorded import OTHERS, Recorded, check_nesting, check_sequences, differences
from tap import done, ok
from torch_env import Recording, pythons, version_of

HERE = os.path.dirname(os.path.abspath(__file__))
UNWOUND = 16
PYTHON_NODE, NAME_IN_PYTHON = "torch::autograd::PyNode", "CubeBackward"


def check(version, truth, recorded):
    name, events = f"{version}: {truth['name']}", recorded.within(truth["start"], truth["end"])
    expected = {n: c for n, c in truth["counts"].items() if not OTHERS.match(n)}
    got = [NAME_IN_PYTHON if n == PYTHON_NODE else n for _, n in events]
    if truth["name"] == "Threads":
        got = [n for n in got if n in expected]
    wrong = differences(got, expected)
    ok(expected and not wrong, f"{name}: {len(expected)} names as often as torch.profiler counts them ({sum(expected.values())})",
       "\n".join(wrong))
    calls = [e for e, _ in events if "inner" in e]
    check_nesting(name, calls)
    return events


def check_version(interpreter):
    version = version_of(interpreter)
    r = Recording([interpreter, f"{HERE}/workloads.py"], "--torch=all")
    truths = {t["name"]: t for t in map(json.loads, (line for line in r.output if line.startswith("{")))}
    ok(len(truths) == 11 and not r.status, f"{version}: all workloads ran", r.messages if r.status else "", len(truths))
    # the last line, about costs, mentions hits of processes that are not traced
    if not ok("not traced" not in r.messages.split("sonde: cost:")[0], f"{version}: libtorch_cpu is probed", r.messages):
        return
    recorded = Recorded(r.trace, r.pid)
    events = {name: check(version, truth, recorded) for name, truth in truths.items()}
    lost = [e for e in r.trace.events("meta_loss") if e["family"] == 0x0e and e["pid"] in (0, r.pid)]
    ok(not lost, f"{version}: no record is lost", lost)
    ok(not r.changed, f"{version}: after the recording the library's code in the process is that of its file", r.changed)

    flags = collections.Counter((n, e["flags"]) for e, n in events["Raises"])
    raised = flags["aten::mm", UNWOUND], flags["aten::einsum", UNWOUND]
    ok(raised == (200, 200) and {f for _, f in flags} == {0, UNWOUND},
       f"{version}: operators that raise are marked so, those within and around them, too", raised, flags)
    for name in truths.keys() - {"Raises"}:
        other = [(n, e["flags"]) for e, n in events[name] if e["flags"]]
        ok(not other, f"{version}: {name}: every call returned", other[:5])
    ok(len({e["tid"] for e, _ in events["Threads"]}) >= 4, f"{version}: the calls of at least four threads are recorded")

    check_sequences(version, events["Training"], truths["Training"])


for interpreter in pythons():
    check_version(interpreter)
done()
