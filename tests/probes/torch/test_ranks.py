#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report ranks: one of two ranks over gloo has a planted delay. The report names this rank, the phase and the code of the delay, and
the times agree with what the ranks' own clocks measured, also the time for which the other rank waits.
The delay is in the data loader, or where the arguments say (`forward`).
test: timeout=300"""
import json
import os
import statistics
import subprocess
import sys

from sonde_cli import SONDE
from tap import done, ok
from torch_env import Recording, python

HERE = os.path.dirname(os.path.abspath(__file__))
PHASES = {"data": "data loading", "forward": "the forward pass"}


def report(path):
    return json.loads(subprocess.run([SONDE, "report", path, "ranks", "--format", "json"], capture_output=True, text=True, check=True).stdout)


def check(where):
    recording = Recording([python(), os.path.join(HERE, "rank_work.py"), where], families="+torch")
    truth = {t["rank"]: t for t in map(json.loads, recording.output)}
    result = report(recording.path)
    rows = result["tables"]["ranks"]
    ok([(r["rank"], r["pid"]) for r in rows] == [(i, truth[i]["pid"]) for i in sorted(truth)], f"{where}: a row for each rank", rows, recording.messages)
    for row in rows:
        # a step ends within the optimizer
        times = truth[row["rank"]]["times"]
        shortest = statistics.median_low(b[3] - a[4] for a, b in zip(times, times[1:]))
        longest = statistics.median_high(b[4] - a[3] for a, b in zip(times, times[1:]))
        ok(row["steps"] == len(times) - 1 and shortest <= row["median_ns"] <= longest, f"{where}: rank {row['rank']} has its own steps", row, shortest, longest)
    # rank 0 waits in its backward pass at least until the backward pass of rank 1 begins
    collectives = [(e["start"], e["time"]) for e in recording.trace.events("torch_collective") if e["pid"] == truth[0]["pid"]]
    began = [t[2] for t in truth[1]["times"][1:]]
    waits = [[at - start for start, end in collectives if start < at < end] for at in began]
    least, most = sum(min(w) for w in waits if w), sum(t[3] - t[2] for t in truth[0]["times"])
    ok(0 < least <= rows[0]["waited_ns"] <= most, f"{where}: rank 0 waited for rank 1", least, rows[0], most)
    found, text = result["findings"][0]["figures"], result["findings"][0]["text"]
    ok(found["rank"] == 1 and found["phase"] == PHASES[where] and found["last_collectives"] >= sum(map(bool, waits)),
       f"{where}: rank 1 makes the other one wait", text, found)
    # the phase of rank 1 contains the delay; the finding may have its time or how much longer it is than that of rank 0
    first = list(PHASES).index(where)
    phases = [statistics.mean(t[first + 1] - t[first] for t in truth[rank]["times"][1:]) for rank in (0, 1)]
    ok(statistics.mean(truth[1]["slept"][1:]) - phases[0] <= found["phase_ns"] <= phases[1], f"{where}: the finding has the planted delay", found, phases)
    ok("read_slowly (rank_work.py" in text, f"{where}: the finding names the slow rank's code", text)
    summary = subprocess.run([SONDE, "report", recording.path], capture_output=True, text=True, check=True).stdout
    ok(f"rank 1 (rank_work.py {truth[1]['pid']}) makes the other rank wait" in summary, f"{where}: the summary states it", summary[:2000])
    return recording


def check_exports(recording):
    chrome = json.loads(subprocess.run([SONDE, "export", recording.path, "--to", "chrome"], capture_output=True, text=True, check=True).stdout)
    names = sorted(e["args"]["name"] for e in chrome["traceEvents"] if e["name"] == "process_name" and e["args"]["name"].startswith("rank "))
    ok(names == ["rank 0: rank_work.py", "rank 1: rank_work.py"], "exports name the ranks", names)
    waits = {e["name"] for e in chrome["traceEvents"] if e.get("cat") == "cpu_op" and e["name"].startswith("c10d::")}
    ok({"c10d::Reducer::finalize_backward", "c10d::ProcessGroupGloo::AsyncWork::execute"} <= waits, "exports have the ranks' collectives", waits)


def main():
    for where in sys.argv[1:] or ["data"]:
        recording = check(where)
    check_exports(recording)
    done()


main()
