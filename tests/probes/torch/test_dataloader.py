#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report dataloader: loops that wait for workers that compute, for workers that read from a disk, for none, or that load the data themselves; the
figures are compared with the programs' own clocks.
test: timeout=300"""
import json
import os

from planted import say
from tap import done, ok
from torch_env import Recording, judge_modes, python

HERE = os.path.dirname(os.path.abspath(__file__))
POINTS = 1  # of a share of the loop's time
PART = 0.25  # of the workers' times: collating and sending are no part of __getitem__, and the recording is longer than the loop


def workers_time(report, *columns):
    return sum(w["wall_ns"] * w[c] / 100 for w in report["tables"]["workers"] for c in columns) / 1e9


def check(r, mode, start, end, in_range, in_next, steps, cpu, inside):
    low, high = (100 * ns / (end - start) for ns in (in_range, in_next))
    cpu, inside = cpu / 1e9, inside / 1e9
    at = [(t - r.trace.head["clocks"]["monotonic"]) / 1e9 for t in (start, end)]
    report = json.loads(say("report", r.path, "dataloader", "--time", f"{at[0]:.6f}..{at[1]:.6f}", "--format", "json"))
    loader = next(row for row in report["tables"]["loaders"] if row["pid"] == r.pid)
    finding = next(f for f in report["findings"] if f["figures"]["pid"] == r.pid)
    text = finding["text"]
    ok(low - POINTS <= loader["loader_percent"] <= high + POINTS, f"{mode}: its share of time in the loader", (loader, low, high))
    ok(steps - 2 <= loader["batches"] <= steps + 2, f"{mode}: its batches", (loader, steps))
    ok(loader["workers"] == (0 if mode == "own" else 2), f"{mode}: its workers", report["tables"]["workers"])
    ok(finding["figures"]["starved"] == (mode != "fed"), f"{mode}: starved or not", text)
    if mode == "own":
        ok("num_workers=N" in text, "own: the advice", text)
        return
    ran, busy = workers_time(report, "run_percent"), workers_time(report, "run_percent", "disk_percent", "runnable_percent", "other_percent")
    ok(cpu * (1 - PART) <= ran <= cpu * (1 + PART) + 0.3, f"{mode}: CPU time of the workers", (ran, cpu))
    ok(inside * (1 - PART) <= busy <= inside * (1 + PART) + 0.3, f"{mode}: time of the workers that are not idle", (busy, inside))
    if mode == "slow":
        ok("in decode (loader_work.py:" in text, "slow: the code in which the workers ran", text)
    if mode == "disk":
        disk = workers_time(report, "disk_percent")
        ok(disk >= (inside - cpu) / 4, "disk: the workers wait for the disk", (disk, inside, cpu))


judge_modes(lambda: Recording([python(), os.path.join(HERE, "loader_work.py")], families="+torch"), check)
done()
