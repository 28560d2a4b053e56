#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report dataloader: loops that wait for workers that compute, for workers that read from a disk, for none, or that load the data themselves; the
figures are compared with the programs' own clocks.
test: timeout=300"""
import json
import os

from bounds import within
from planted import say
from tap import done, ok
from torch_env import Recording, judge_modes, python

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = 0.01  # s; at the longest, the kernel counts a running thread's time at each
WORKERS = 2


def workers_time(report, *columns):
    return sum(w["wall_ns"] * w[c] / 100 for w in report["tables"]["workers"] for c in columns) / 1e9


def check(r, mode, start, end, in_range, in_next, steps, *of_workers):
    cpu, inside, longest, ran, runnable = (ns / 1e9 for ns in of_workers)
    at = [(t - r.trace.head["clocks"]["monotonic"]) / 1e9 for t in (start, end)]
    report = json.loads(say("report", r.path, "dataloader", "--time", f"{at[0]:.9f}..{at[1]:.9f}", "--format", "json"))
    loader = next(row for row in report["tables"]["loaders"] if row["pid"] == r.pid)
    finding = next(f for f in report["findings"] if f["figures"]["pid"] == r.pid)
    text = finding["text"]
    ok(in_range <= loader["loader_ns"] <= in_next, f"{mode}: its time in the loader", in_range, loader, in_next)
    ok(loader["batches"] == steps, f"{mode}: its batches", (loader, steps))
    ok(loader["workers"] == (0 if mode == "own" else WORKERS), f"{mode}: its workers", report["tables"]["workers"])
    ok(finding["figures"]["starved"] == (mode != "fed"), f"{mode}: starved or not", text)
    if mode == "own":
        ok("num_workers=N" in text, "own: the advice", text)
        return
    ticks, why = 2 * WORKERS * TICK, "the kernel counts a running thread's time at its ticks"
    for name, column, true in (("they ran", "run_percent", ran), ("they waited for a CPU", "runnable_percent", runnable)):
        found = workers_time(report, column)
        if mode == "disk":  # what is short between two waits for a disk counts as these
            ok(found <= true + ticks, f"{mode}: time for which {name}", found, true)
        else:
            within(f"{mode}: time for which {name}", found, true, ticks, why)
    busy = workers_time(report, "run_percent", "disk_percent", "runnable_percent", "other_percent")
    # one call of __getitem__ in each worker may have begun before
    blocked = max(0, inside - cpu)
    ok(inside - WORKERS * longest <= busy <= ran + runnable + blocked + ticks, f"{mode}: time of the workers that are not idle",
       (busy, inside, longest, ran, runnable, blocked))
    if mode == "slow":
        ok("in decode (loader_work.py:" in text, "slow: the code in which the workers ran", text)
    if mode == "disk":
        disk = workers_time(report, "disk_percent")
        ok(disk >= (blocked - runnable) / 2, "disk: the workers wait for the disk", (disk, inside, cpu, runnable))


judge_modes(lambda: Recording([python(), os.path.join(HERE, "loader_work.py")], families="+torch"), check)
done()
