#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report torch-memory has the memory that each operator allocated and freed as torch.profiler's profile_memory has it, to the byte; and of a loop
whose steps leave a tensor behind it names the operator, of one without it says nothing. In the Perfetto
export the counter of the memory changes by the same bytes, and Kineto's file has the events [memory] of torch.profiler.
test: timeout=300 parallel"""
import json
import os
import re
import subprocess
import time

import perfetto_file
from clocks import ahead_of_monotonic
from recording import workdir
from tap import done, ok, skip
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
    judge = ok if truth["exact"] else lambda right, name, *detail: skip(name, "this version of torch.profiler rounds the times of operators")
    judge(len(expected) > 3 and not wrong, f"{truth['name']}: the memory of {len(expected)} operators is that of profile_memory", wrong)
    rest = sum(b for n, b in truth["memory"].items() if OTHERS.match(n))
    ok(sum(rows.values()) == sum(truth["memory"].values()), f"{truth['name']}: so is the sum of all", rows, truth["memory"])
    judge(rows.get(None, 0) == rest, f"{truth['name']}: so is that of the rest", rows.get(None, 0), rest)
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


def at(values, moment):
    """The value of a counter at a time; 0 before its first"""
    return next((value for changed, value in reversed(values) if changed <= moment), 0)


def check_perfetto(r, truths):
    pb, reason = perfetto_file.classes()
    if not pb:
        skip("Perfetto's counter of the memory", reason)
        return
    path = os.path.join(workdir(), "memory.pftrace")
    subprocess.run([os.environ["SONDE"], "export", r.path, "--to", "perfetto", "-o", path], check=True)
    with open(path, "rb") as file:
        f = perfetto_file.PerfettoFile(pb, file.read())
    ahead = ahead_of_monotonic(time.CLOCK_BOOTTIME)
    counters = f.counter("PyTorch memory (CPU)", r.pid)
    ok(len(counters) == 1 and not f.errors, "Perfetto has one counter of the process's memory", f.errors)
    for truth in truths:
        grown = at(counters[0], truth["end"] + ahead) - at(counters[0], truth["start"] + ahead)
        ok(grown == sum(truth["memory"].values()), f"{truth['name']}: it grows by what profile_memory's operators allocated less what they freed",
           grown, sum(truth["memory"].values()))


def of_window(rows, start, end):
    """[bytes, address] of the rows in this time, without releases of blocks from before it, whose size the profiler does not know"""
    addresses, found = set(), []
    for row in rows:
        change, address = row["args"]["Bytes"], row["args"]["Addr"]
        if start <= row["ns"] <= end and (change > 0 or address in addresses):
            found.append([change, address])
            (addresses.add if change > 0 else addresses.remove)(address)
    return found


def check_kineto(r, truths):
    path = os.path.join(workdir(), "memory.json")
    subprocess.run([os.environ["SONDE"], "export", r.path, "--to", "kineto", "--event", str(r.pid), "-o", path], check=True)
    with open(path, "rb") as file:
        exported = json.load(file)
    ahead = ahead_of_monotonic(time.CLOCK_REALTIME)
    rows = [e for e in exported["traceEvents"] if e["name"] == "[memory]"]
    for row in rows:
        row["ns"] = exported["baseTimeNanoseconds"] + row["ts"] * 1000 - ahead
    rows.sort(key=lambda row: row["ns"])
    for truth in truths:
        found = of_window(rows, truth["start"], truth["end"])
        ok(found == truth["instants"] != [], f"{truth['name']}: Kineto's file has the {len(found)} [memory] events of torch.profiler, bytes and addresses",
           len(truth["instants"]), [(a, b) for a, b in zip(found, truth["instants"]) if a != b][:5])
    totals = [row["args"]["Total Allocated"] for row in rows]
    wrong = [(a, b, row) for a, b, row in zip(totals, totals[1:], rows[1:]) if b - a != row["args"]["Bytes"]]
    ok(not wrong and {(row["ph"], row["cat"], row["args"]["Device Type"], row["args"]["Device Id"]) for row in rows} == {("i", "cpu_instant_event", 0, -1)},
       "their totals follow from their bytes, and they have torch.profiler's form", wrong[:3], rows[:1])


def main():
    r = Recording([python(), f"{HERE}/memory.py"], "--torch=all")
    truths = [json.loads(line) for line in r.output if line.startswith("{")]
    ok(len(truths) == 5 and not r.status, "all workloads ran", r.status, r.messages)
    r.start = report(r, ["losses"])["trace"]["start_ns"]
    for truth in truths:
        check_operators(r, truth) if "memory" in truth else check_loop(r, truth)
    profiled = [truth for truth in truths if "memory" in truth]
    check_perfetto(r, profiled)
    check_kineto(r, profiled)
    done()


main()
