#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report ranks on four ranks over gloo without steps of training: one that is late, always or once, one that never enters a collective, and none.
Each collective is matched in all ranks; the times agree with what the ranks' own clocks measured. With several process groups the sentence is that
of the summary, and a note states how many collectives were not compared. With the library in the process the report is the same.
test: timeout=300"""
import collections
import json
import os
import subprocess

from sonde_cli import SONDE
from collective_work import DELAY, HANG, ODD, ONCE, RANKS, STEPS
from tap import done, ok
from torch_env import Recording, python

HERE = os.path.dirname(os.path.abspath(__file__))


def record(what, *options):
    """The recording, its report ranks, the pids of the ranks, and {rank: [(before, after)]} of their calls"""
    recording = Recording([python(), os.path.join(HERE, "collective_work.py"), what], *options, families="+torch")
    lines = [json.loads(line) for line in recording.output if not line.startswith("pids ")]
    report = json.loads(subprocess.run([SONDE, "report", recording.path, "ranks", "--format", "json"], capture_output=True, text=True, check=True).stdout)
    return recording, report, recording.pids, {t["rank"]: t["times"] for t in lines}


def summary_of(recording):
    return " ".join(subprocess.run([SONDE, "report", recording.path], capture_output=True, text=True, check=True).stdout.split())


def check_rows(label, report, pids, times):
    rows = report["tables"]["ranks"]
    ok([(r["rank"], r["pid"], r["collectives"]) for r in rows] == [(i, pids[i], STEPS) for i in range(RANKS)], f"{label}: each rank's collectives", rows)
    for row in rows:
        most = sum(after - before for before, after in times[row["rank"]])
        ok(row["waited_ns"] <= most, f"{label}: rank {row['rank']} waited within its calls", row, most)
    return {r["rank"]: r for r in rows}


def late(*options):
    recording, report, pids, times = record("late", *options)
    rows = check_rows(f"late {options}", report, pids, times)
    others = [i for i in range(RANKS) if i != ODD]
    if options:
        calls = collections.Counter(e["pid"] for e in recording.trace.events("torch_op"))
        ok(set(calls) == set(pids), f"late {options}: calls of operators of each rank", pids, calls)
    # by how much it was later than all others, by the ranks' clocks; a thread of gloo takes its time to begin
    behind = [times[ODD][step][0] - max(times[i][step][0] for i in others) for step in range(STEPS)]
    sure = [ns for ns in behind if ns > DELAY * 1e9 / 2]
    found, text = report["findings"][0]["figures"], report["findings"][0]["text"]
    ok(found["rank"] == ODD and found["pid"] == pids[ODD] and found["last_collectives"] >= len(sure), "the late rank is the first finding", text, found)
    ok(found["delayed_ns"] >= sum(sure) - len(sure) * DELAY * 1e9 / 2, "by how much it delays the others", found, sum(sure))
    ok("load_shard (collective_work.py" in text, "and its code", text)
    ok(all(rows[i]["waited_ns"] > rows[ODD]["waited_ns"] for i in others), "the others wait", rows)
    ok(f"rank {ODD} (collective_work.py {pids[ODD]}) makes the 3 other ranks wait" in summary_of(recording), "the summary states it")


def hang():
    recording, report, pids, _ = record("hang")
    found, text = report["findings"][0]["figures"], report["findings"][0]["text"]
    ok(found["rank"] == ODD and found["pid"] == pids[ODD] and found["collective"] == HANG + 1 and found["absent"] == 1,
       "the rank that never came, and to what", text, found, recording.messages)
    ok("the 3 other ranks" in text and found["stuck_ns"] >= 2e9, "for how long", text)
    ok("wait_for_storage (collective_work.py" in text, "and what its thread does", text)
    summary = summary_of(recording)
    ok(f"had not come to collective {HANG + 1}" in summary, "the summary states it", summary[:3000])


def once():
    recording, report, pids, times = record("once")
    check_rows("once", report, pids, times)
    found, text = report["findings"][0]["figures"], report["findings"][0]["text"]
    ok(len(report["findings"]) == 1 and found["rank"] == ODD and found["pid"] == pids[ODD] and found["collective"] == HANG + 1,
       "a rank that was late once, and where", text, found)
    behind = times[ODD][HANG][0] - max(times[i][HANG][0] for i in range(RANKS) if i != ODD)
    ok(behind - ONCE * 1e9 / 2 <= found["late_ns"] <= times[ODD][HANG][1] - max(times[i][HANG - 1][0] for i in range(RANKS) if i != ODD),
       "by how much", text, behind)


def groups():
    recording, report, pids, _ = record("groups")
    first, summary = report["findings"][0], summary_of(recording)
    text = " ".join(first["text"].split())
    ok(first["pid"] == pids[ODD] and "load_shard (collective_work.py" in text and text.rstrip(".") in summary,
       "several groups: the summary's sentence", text, summary[:2000])
    notes = [note for note in report["notes"] if "several process groups of gloo" in str(note)]
    rows = report["tables"]["ranks"]
    unmatched = 2 * STEPS * RANKS - sum(row["collectives"] for row in rows)
    ok(len(notes) == 1 and f"For {unmatched} of {2 * STEPS * RANKS} none of another rank was found" in str(notes[0]),
       "how many collectives were not compared", report["notes"], rows)


def none():
    recording, report, pids, times = record("none")
    check_rows("none", report, pids, times)
    text = report["findings"][0]["text"]
    ok(not any("process groups" in str(note) for note in report["notes"]), "one process group", report["notes"])
    ok(text.startswith("No rank") and len(report["findings"]) == 1, "ranks that are alike: none is named", report["findings"])
    ok("makes the" not in summary_of(recording), "nor in the summary")


def main():
    late()
    late("--inject")
    hang()
    once()
    groups()
    none()
    done()


main()
