#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process that --comm catches when it takes its name: threads that it has had for long are followed from there on."""
import os
import subprocess
import sys

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sonde_trace import Trace
from tap import done, ok


def main():
    path = os.path.join(TMP, "late.sonde")
    target = subprocess.Popen([os.path.join(B, "tests", "workloads", "late"), "late-name"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    tid = int(target.stdout.readline().split()[1])
    tracer = subprocess.Popen([SONDE, "record", "-t", "syscall,lock,disk,sched", "--sched=all", "--comm", "late-name",
                               "-d", "3", "-f", "-o", path], stderr=subprocess.PIPE, text=True)
    said = ""
    while "tracing into" not in said:
        said += tracer.stderr.readline() or "tracing into"
    target.stdin.write("go\n")
    target.stdin.flush()
    said += tracer.communicate(timeout=60)[1]
    target.wait(timeout=10)
    ok(tracer.returncode == 0, "recorded", said)
    trace = Trace(path)
    for kind, least in (("syscall", 100), ("lock_wait", 50), ("sched_off", 100), ("disk_task", 1)):
        events = list(trace.events(kind))
        mine = [e for e in events if e["tid"] == tid]
        ok(len(mine) >= least, f"{kind}: of a thread that is older than its process's name", len(mine))
        ok(all(e["pid"] == target.pid for e in events), f"{kind}: and of no other process")
    done()


main()
