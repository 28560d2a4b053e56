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
        ends = truth[row["rank"]]["ends"]
        median = statistics.median(b - a for a, b in zip(ends, ends[1:]))
        ok(row["steps"] == len(ends) - 1 and abs(row["median_ns"] - median) < 0.02 * median + 2e6,
           f"{where}: rank {row['rank']} has its own steps", row, median)
    slept = sum(truth[1]["slept"][1:])
    own = sum(rows[1][f"{p}_ns"] for p in ("data", "forward", "backward", "optimizer", "other")) - \
        sum(rows[0][f"{p}_ns"] for p in ("data", "forward", "backward", "optimizer", "other"))
    waited = rows[0]["waited_ns"] - rows[1]["waited_ns"]
    # The other rank waits for as long as the slow rank's own code takes longer. The first comparison is with the phases
    # of the report, which contain the work itself, so it is closer than that with the delay: on a busy machine the work
    # varies.
    ok(abs(waited - own) < 0.1 * own, f"{where}: rank 0 waited for as long as rank 1 took longer", waited, own)
    ok(abs(waited - slept) < 0.25 * slept, f"{where}: that is about the planted delay", waited, slept)
    found, text = result["findings"][0]["figures"], result["findings"][0]["text"]
    ok(found["rank"] == 1 and found["phase"] == PHASES[where] and found["last_steps"] > 0.8 * rows[1]["steps"], f"{where}: rank 1 makes the other one wait",
       text, found)
    ok(abs(found["phase_ns"] - statistics.mean(truth[1]["slept"][1:])) < 0.1 * found["phase_ns"] + 2e6, f"{where}: the finding has the planted delay", found)
    ok("read_slowly (rank_work.py" in text, f"{where}: the finding names the slow rank's code", text)
    summary = subprocess.run([SONDE, "report", recording.path], capture_output=True, text=True, check=True).stdout
    ok(f"rank_work.py {truth[1]['pid']} made the other ranks wait for" in summary, f"{where}: the summary states it", summary[:2000])
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
