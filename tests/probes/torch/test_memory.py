#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report torch-memory has the memory that each operator allocated and freed as torch.profiler's profile_memory has it, to the byte; and of a loop
whose steps leave a tensor behind it names the operator, of one without it says nothing.
test: timeout=300"""
import json
import os
import re
import subprocess

from tap import done, ok
from torch_env import Recording, python

HERE = os.path.dirname(os.path.abspath(__file__))
# torch.profiler has events of its own for these, in which memory is freed; here it is of no operator
OTHERS = re.compile(r"autograd::engine::evaluate_function: |(\[memory\]|detach|torch::autograd::GraphRoot)$|Optimizer\.|enumerate\(|ProfilerStep")


def report(r, name, truth=None):
    argv = [os.environ["SONDE"], "report", r.path, *name, "--format", "json"]
    if truth:
        argv += ["--time", f"{(truth['start'] - r.start) / 1e9:.9f}..{(truth['end'] - r.start) / 1e9:.9f}"]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def check_operators(r, truth):
    found = report(r, ["torch-memory"], truth)
    rows = {row["name"]: row["self_memory_bytes"] for row in found["tables"]["operators"]}
    expected = {n: b for n, b in truth["memory"].items() if b and not OTHERS.match(n)}
    got = {n: b for n, b in rows.items() if b and n}
    wrong = {n: (got.get(n), expected.get(n)) for n in {*got, *expected} if got.get(n) != expected.get(n)}
    ok(len(expected) > 3 and not wrong, f"{truth['name']}: the memory of {len(expected)} operators is that of profile_memory", wrong)
    rest = sum(b for n, b in truth["memory"].items() if OTHERS.match(n))
    ok(rows.get(None, 0) == rest, f"{truth['name']}: so is that of the rest", rows.get(None, 0), rest)
    process = found["tables"]["processes"][0]
    sites = found["tables"]["sites"]
    ok(sum(s["peak_bytes"] for s in sites) == process["peak_bytes"] > 0 and sum(s["live_bytes"] for s in sites) == process["live_bytes"],
       f"{truth['name']}: sites add up to the process's peak and end", process)
    line = [p["live_bytes"] for p in found["tables"]["timeline"]]
    ok(max(line) == process["peak_bytes"] and line[-1] >= process["live_bytes"], f"{truth['name']}: so does the time line", max(line), line[-1])


def check_loop(r, truth):
    found = report(r, ["torch-memory"], truth)
    grows = [f["figures"] for f in found["findings"] if "step_bytes" in f["figures"]]
    summary = [f for f in report(r, [], truth)["findings"] if f.get("kind") == "memory-growth"]
    if not truth["left"]:
        ok(not grows and not summary, "a loop whose steps leave nothing: no finding", grows, summary)
        return
    ok(len(grows) == 1 and grows[0]["step_bytes"] == truth["left"] and grows[0]["name"] == "aten::clone", "the leak is named with its operator", grows)
    ok(len(summary) == 1 and "aten::clone" in summary[0]["text"], "the summary says so, too", summary)


def main():
    r = Recording([python(), f"{HERE}/memory.py"], "--torch=all")
    truths = [json.loads(line) for line in r.output if line.startswith("{")]
    ok(len(truths) == 5 and not r.status, "all workloads ran", r.status, r.messages)
    r.start = report(r, ["losses"])["trace"]["start_ns"]
    for truth in truths:
        check_operators(r, truth) if "memory" in truth else check_loop(r, truth)
    done()


main()
