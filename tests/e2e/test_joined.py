#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""--comm selects a process when its name changes: threads that existed before are followed from then on."""
import os
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok


def main():
    path = os.path.join(TMP, "late.sonde")
    target = subprocess.Popen([os.path.join(B, "tests", "workloads", "late"), "late-name"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    tid = int(target.stdout.readline().split()[1])
    sonde = Sonde(path, "-t", "syscall,lock,disk,sched", "--sched=all", "--comm", "late-name", "-d", "3")
    target.stdin.write("go\n")
    target.stdin.flush()
    status = sonde.end(None)
    target.wait(timeout=60)
    ok(status == 0, "recorded", sonde.messages)
    trace = Trace(path)
    for kind, least in (("syscall", 100), ("lock_wait", 50), ("sched_off", 100), ("disk_task", 1)):
        events = list(trace.events(kind))
        mine = [e for e in events if e["tid"] == tid]
        ok(len(mine) >= least, f"{kind}: events of a thread that existed before the process got its name", len(mine))
        ok(all(e["pid"] == target.pid for e in events), f"{kind}: no other process has events")
    done()


main()
