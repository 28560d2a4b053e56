#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Training, exported to Perfetto and to Chrome's JSON: Perfetto's own engine reads each call, a flow from each operator's call to the backward node
that it made, as many as torch.profiler's export has, and the steps on a track of their own. SONDE_TORCH_PYTHON may list several Pythons.
test: timeout=300 parallel"""
import json
import os
import sys

from sonde_cli import tables
from tap import done, ok
from torch_env import Recording, pythons, version_of

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../../e2e"))
import engine_lib  # noqa: E402
from export_lib import Truth  # noqa: E402

OPTIMIZER_STEPS = 2 * 20  # of the workload Training: a warm-up, and the same again


def check_flows(version, truth, trace):
    """As many of the flows as torch.profiler's export has, in the time that it recorded"""
    starts = [node for _, node in engine_lib.torch_flows(trace) if truth["start"] <= node < truth["end"]]
    ok(len(starts) == truth["flows"] > 0, f"{version}: {truth['name']}: as many flows as torch.profiler exports", len(starts), truth["flows"])


def check_steps(version, trace, engine, path):
    """The steps are as many as the program's, from the end of its first to the end of its last, and as long as report steps has them."""
    rows = [(int(ts), int(dur), name) for ts, dur, name in engine.query(
        "SELECT ts, dur, s.name FROM slice s JOIN track t ON t.id = s.track_id WHERE t.name = 'training steps' ORDER BY ts")]
    loops = tables("report", path, "steps")["loops"]
    ends = sorted(e["time"] + trace.ahead for e in trace.of("torch_range") if trace.title(e).startswith("Optimizer.step#"))
    want = [(a, b - a, f"step {n}") for n, (a, b) in enumerate(zip(ends, ends[1:]), 1)]
    ok(rows == want and len(rows) == OPTIMIZER_STEPS - 1, f"{version}: engine: {len(rows)} steps are between the ends of the optimizer's calls",
       rows[:3], want[:3])
    ok([loop["steps"] for loop in loops] == [len(rows)], f"{version}: report steps has as many", loops)


def check_version(interpreter):
    version = version_of(interpreter)
    r = Recording([interpreter, f"{HERE}/workloads.py", "--flows", "Training", "Convolution", "Attention"], "--torch=all",
                  families="proc,torch")
    trace = Truth(r.path)
    engine = engine_lib.check_all(trace, r.path, version)
    if not engine:
        return
    ok(not list(r.trace.events("meta_loss")), f"{version}: no record is lost")
    for truth in map(json.loads, (line for line in r.output if line.startswith("{"))):
        check_flows(version, truth, trace)
    check_steps(version, trace, engine, r.path)


for python in pythons():
    check_version(python)
done()
