#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""Traces whose scheduler was measured in slices of time: shares are relative to the slices, of merged traces too, and without slices."""
import json
import os
import subprocess

from planted import GOLDEN, SONDE
from sonde_cli import make_trace
from tap import done, ok

TMP = os.environ["TMPDIR"]
CYCLES = 20  # of a second, of which 0.2 s are measured
MANY = 1_000_000


def path(name):
    return os.path.join(TMP, name)


def schema():
    """A schema with event meta_unmeasured"""
    with open(os.path.join(GOLDEN, "stop.schema.json"), encoding="utf-8") as f:
        s = json.load(f)
    end = next(e for e in s["events"] if e["name"] == "meta_end")
    start = {"name": "start", "type": "unsigned", "size": 8, "offset": 24, "unit": "moment", "doc": ""}
    s["events"].append({"name": "meta_unmeasured", "id": 15, "doc": "", "size": 32, "fields": [*end["fields"][:7], start]})
    s["events"].sort(key=lambda e: e["id"])
    return s


def report(*args):
    out = subprocess.run([SONDE, "report", *args, "--format", "json"], capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def sliced(name, pid, phase, seconds=CYCLES):
    """A thread that computes for half of each slice. A slice is [k + phase, k + phase + 0.2) s."""
    lines = [f'proc_task time=@0 pid={pid} tid={pid} ppid=1 comm="rank"', "meta_cost time=@0.0001 wall=100000"]
    gaps = [(0, phase)] if phase else []
    for k in range(seconds):
        begin = k + phase
        lines += [f"sched_run pid={pid} tid={pid} start=@{begin:.3f} time=@{begin + 0.1:.3f} state=SCHED_SLEEP",
                  f"sched_off pid={pid} tid={pid} start=@{begin + 0.1:.3f} time=@{begin + 0.2:.3f} wake=@{begin + 0.2:.3f} state=SCHED_SLEEP"]
        gaps.append((begin + 0.2, min(begin + 1, seconds)))
    lines += [f"meta_unmeasured start=@{a:.3f} time=@{b:.3f}" for a, b in gaps]
    lines += [f"meta_cost time=@{seconds} wall={seconds}000000000", f"meta_end time=@{seconds} stop=@{seconds} reason=END_DURATION"]
    return make_trace(path(name), lines, schema())


def busy(result):
    """CPUs busy on average, as the report says"""
    text = next(f["text"] for f in result["findings"] if "CPUs busy" in f["text"])
    return float(text.split("all: ")[1].split()[0])


def check_alone(one):
    result = report(one, "sched")
    ok(result["trace"]["unmeasured_ns"] == CYCLES * 800_000_000, "the unmeasured time of a trace", result["trace"])
    ok(busy(result) == 0.5, "a thread that computes for half of each slice keeps half a CPU busy", result["findings"])
    part = report(one, "sched", "--time", "5..7.1")
    ok(busy(part) == 0.6, "and of a selected time, the part in its slices counts", part["findings"])


def check_merged(traces):
    """Each of four is measured a fifth of the time, the others at other moments: together they keep two CPUs busy."""
    result = report(*traces, "sched")
    ok(result["trace"]["traced_ns"] == CYCLES * 1_000_000_000 and result["trace"]["unmeasured_ns"] == CYCLES * 800_000_000,
       "the unmeasured time of merged traces is the mean", result["trace"])
    ok(busy(result) == 2.0, "four such threads of four traces keep two CPUs busy", result["findings"])


def check_diff(one, two):
    """Of a trace without any slice, only the events of another one are left."""
    lines = ['proc_task time=@0 pid=70 tid=70 ppid=1 comm="other"', "meta_cost time=@0.0001 wall=100000",
             "sched_run pid=70 tid=70 start=@1 time=@3 state=SCHED_SLEEP", "meta_unmeasured start=@0 time=@4",
             "meta_cost time=@4 wall=4000000000", "meta_end time=@4 stop=@4 reason=END_DURATION"]
    never = make_trace(path("never"), lines, schema())
    out = subprocess.run([SONDE, "diff", never, one], capture_output=True, text=True, check=True).stdout
    ok("inf" not in out.replace("info", "") and "nan" not in out and "Only in trace before" not in out,
       "a difference from a trace without slices has no share of nothing", out)
    rows = {r["kind"]: r for r in json.loads(subprocess.run([SONDE, "diff", one, two, "--format", "json"], capture_output=True, text=True,
                                                               check=True).stdout)["tables"]["causes"]}
    ok(rows and all(abs(r["before_percent"] - r["after_percent"]) < 0.1 for r in rows.values()), "the same load has the same shares", rows)


def check_gil():
    """A time in a pause between two slices, or in the one before the end, was not measured: the report does not only say that no thread waited."""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="python"', "meta_cost time=@0.0001 wall=100000", "gil_slice start=@1 time=@2",
             "gil_slice start=@11 time=@12 pause=9000000000", "gil_slice start=@21 time=@21 pause=9000000000",
             "meta_cost time=@21 wall=21000000000", "meta_end time=@21 stop=@21 reason=END_DURATION"]
    trace = make_trace(path("gil"), lines, schema())
    for selected, want in (("6..7", "were not measured in this time"), ("20..21", "were not measured in this time"),
                           ("1..6", "only in 20% of the time")):
        notes = json.dumps(report(trace, "gil", "--time", selected))
        ok(want in notes, f"waits for the GIL in {selected} s: {want}", notes)


def check_many():
    ends = [f"meta_unmeasured start=@{i // 1000}.{i % 1000:03d}2 time=@{i // 1000}.{i % 1000:03d}9" for i in range(MANY)]
    s = MANY // 1000
    threads = [f"sched_run pid={10 + i} tid={10 + i} start=@{i}.0 time=@{i}.0001 state=SCHED_SLEEP" for i in range(200)]
    trace = make_trace(path("many"), ["meta_cost time=@0.0001 wall=100000", *threads, *ends, f"meta_cost time=@{s} wall={s}000000000",
                                      f"meta_end time=@{s} stop=@{s} reason=END_DURATION"], schema())
    for name in ("summary", "sched", "timeline"):
        text = subprocess.run([SONDE, "report", trace, name], capture_output=True, text=True, check=True).stdout
        ok("too many slices of time" in text, f"a report of a million pauses says that there were too many: {name}", text[-600:])


one = sliced("one", 10, 0)
check_alone(one)
check_merged([one, *(sliced(f"rank{i}", 10 + 10 * i, 0.25 * i) for i in (1, 2, 3))])
check_diff(one, sliced("two", 10, 0.5))
check_gil()
check_many()
done()
