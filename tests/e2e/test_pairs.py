#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""A time and the count beside it are of the same threads and waits, in a trace with known sums and in the golden traces."""
import glob
import json
import os
import re
import subprocess
import tempfile

import pairs_lib
from sonde_cli import make_trace, tables
from tap import done, ok

ROOT, B, SONDE = (os.environ[n] for n in ("ROOT", "B", "SONDE"))
GOLDEN = os.path.join(ROOT, "tests", "golden")


def trace(folder, name, lines, schema):
    return make_trace(os.path.join(folder, name), lines, schema)


def sleepers(folder):
    """Threads that sleep often, before and after a thread with two long sleeps, and one that hardly sleeps."""
    lines, at = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="many"'], 1.0
    for tid, n, each in ((10, 60, 0.01), (11, 2, 2), (12, 30, 0.02), (13, 43, 0.01)):
        for i in range(n):
            span = f"pid=10 tid={tid} start=@{at + i * each:.6f} time=@{at + (i + 1) * each:.6f}"
            lines.append(f"sched_off {span} wake=@{at + (i + 1) * each:.6f} state=SCHED_SLEEP")
            lines.append(f"syscall {span} nr=SYS_clock_nanosleep")
    # it sleeps for less than a tenth of its time, which is too little to count for a cause
    lines += ["sched_off pid=10 tid=14 start=@1 time=@2 wake=@2 state=SCHED_SLEEP",
              "sched_off pid=10 tid=14 start=@2 time=@2.01 wake=@2.01 state=SCHED_SLEEP",
              "syscall pid=10 tid=14 start=@2 time=@2.01 nr=SYS_clock_nanosleep"]
    path = trace(folder, "sleepers", lines, os.path.join(GOLDEN, "idle.schema.json"))
    ns, times = 600 + 4000 + 600 + 430, 60 + 2 + 30 + 43
    row = next(r for r in tables("report", path, "offcpu")["causes"] if r["cause"] == "sleep")
    ok((row["ns"], row["times"], row["threads"]) == (ns * 1000000, times, 4), "a cause's time and count are of the same threads", row)
    ok((row.get("what_ns"), row.get("what_times")) == (ns * 1000000, times), "the time and count of a cause's main part are of the same threads", row)
    for report in ("offcpu", "summary"):
        text = subprocess.run([SONDE, "report", path, report], capture_output=True, text=True, check=True).stdout
        said = re.search(r"slept .*\n +(\d+) times in clock_nanosleep, ([0-9.]+) ms each", text)
        # microseconds are printed, rounded down
        ok(said and int(said[1]) == times and 0 <= ns / times - float(said[2]) < 0.001, f"{report}: the time and count of a finding are of the same threads",
           text.splitlines()[:2])
    return path


def lock_of_two(folder):
    """A finding counts only the waits of the threads that it is about."""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="many"', "sched_run pid=10 tid=12 start=@0.5 time=@3 state=SCHED_SLEEP"]
    for tid, n, each in ((10, 4, 0.25), (11, 2, 0.5), (12, 90, 0.0001)):
        for i in range(n):
            start, end = 3 + i * each, 3 + (i + 1) * each
            span = f"pid=10 tid={tid} start=@{start:.6f} time=@{end:.6f}"
            lines.append(f"sched_off {span} wake=@{end:.6f} state=SCHED_SLEEP")
            lines.append(f"lock_wait {span} lock=0x100 owner=12 waker_pid=10 waker_tid=12 woken=@{end:.6f} episode={i}")
    path = trace(folder, "lock", lines, os.path.join(GOLDEN, "os.schema.json"))
    text = subprocess.run([SONDE, "report", path, "offcpu"], capture_output=True, text=True, check=True).stdout
    ok("(2 threads) waited 100% of 1.000 s for a lock\n    6 waits for 0x100, 333.333 ms each" in text,
       "a cause's finding excludes waits of threads that the cause excludes", text.splitlines()[:3])
    return path


def of_probes(folder):
    """Traces of older versions have the system calls by which the kernel handles probes: reports leave them out."""
    with open(os.path.join(GOLDEN, "idle.schema.json")) as f:
        schema = json.load(f)
    next(e for e in schema["enums"] if e["name"] == "syscall_nr")["values"].append({"name": "SYS_uretprobe", "value": 335})
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="many"',
             "sched_off pid=10 tid=10 start=@1 time=@2 wake=@2 state=SCHED_SLEEP",
             "syscall pid=10 tid=10 start=@1 time=@2 nr=SYS_uretprobe", "syscall pid=10 tid=10 start=@2 time=@2.5 nr=SYS_nanosleep"]
    path = trace(folder, "probes", lines, schema)
    rows = tables("report", path, "osrt")["summary"]
    ok([(r["name"], r["calls"]) for r in rows] == [("nanosleep", 1)], "a system call of a probe is not counted as the program's", rows)
    reasons = [r["reason"] for r in tables("report", path, "offcpu")["waits"]]
    ok(reasons and not any("uretprobe" in r for r in reasons), "nor is it where the program waited", reasons)
    return path


with tempfile.TemporaryDirectory() as there:
    paths = [sleepers(there), lock_of_two(there), of_probes(there)]
    for source in sorted(glob.glob(os.path.join(GOLDEN, "*.events"))):
        name = os.path.basename(source)[:-len(".events")]
        with open(source) as f:
            lines = f.read().splitlines()
        # the schema that tests/golden/run chooses
        named = re.match(r"# schema: (\S+)", lines[0])
        schema = os.path.join(GOLDEN, named[1] if named else name + ".schema.json")
        paths.append(trace(there, name, lines, schema if os.path.exists(schema) else os.path.join(GOLDEN, "schema.json")))
    for path in paths:
        bad = pairs_lib.wrong(path)
        ok(not bad, f"{os.path.basename(path)}: each mean is the time divided by the count", "\n".join(map(str, bad[:4])))
done()
