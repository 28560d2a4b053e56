#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs of workloads.py, recorded by the library in the process (--inject): as many operators, backward nodes and ranges of each name as
torch.profiler counts in the same calls, without exception. SONDE_TORCH_PYTHON may list several Pythons.
test: timeout=600"""
import collections
import json
import os

from recorded import Recorded, check_nesting, check_sequences
from tap import done, ok
from torch_env import Recording, pythons, version_of

HERE = os.path.dirname(os.path.abspath(__file__))


def check(version, truth, recorded):
    name, events = f"{version}: {truth['name']}", recorded.within(truth["start"], truth["end"])
    expected = {n: c for n, c in truth["counts"].items() if n != "[memory]"}
    got = collections.Counter(n for _, n in events)
    if truth["name"] == "Threads":
        got = collections.Counter({n: c for n, c in got.items() if n in expected})
    wrong = [f"{n}: {got[n]} recorded, {expected.get(n, 0)} by torch.profiler" for n in sorted({*got, *expected}) if got[n] != expected.get(n, 0)]
    ok(expected and not wrong, f"{name}: {len(expected)} names as often as torch.profiler counts them ({sum(expected.values())})",
       "\n".join(wrong))
    check_nesting(name, [e for e, _ in events if "inner" in e])
    return events


def check_version(interpreter):
    version = version_of(interpreter)
    r = Recording([interpreter, f"{HERE}/workloads.py"], "--inject", "--torch=shim,inner,every")
    truths = {t["name"]: t for t in map(json.loads, (line for line in r.output if line.startswith("{")))}
    ok(len(truths) == 11 and not r.status, f"{version}: all workloads ran", r.messages if r.status else "", len(truths))
    recorded = Recorded(r.trace, r.pid)
    events = {name: check(version, truth, recorded) for name, truth in truths.items()}
    dropped = list(r.trace.events("torch_dropped"))
    ok(not dropped, f"{version}: no record is lost", dropped)
    check_sequences(version, events["Training"], truths["Training"])


for interpreter in pythons():
    check_version(interpreter)
done()
