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


KINDS = {"syscall": 100, "lock_wait": 50, "sched_off": 100}  # the recording lasts until the trace has so many


def main():
    path = os.path.join(TMP, "late.sonde")
    target = subprocess.Popen([os.path.join(B, "tests", "workloads", "late"), "late-name"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    tid = int(target.stdout.readline().split()[1])
    sonde = Sonde(path, "-t", "syscall,lock,disk,sched", "--sched=all", "--comm", "late-name")
    target.stdin.write("go\n")
    target.stdin.flush()

    def mine(trace, kind):
        return [e for e in trace.events(kind) if e["tid"] == tid]
    sonde.wait_trace(lambda trace: all(len(mine(trace, kind)) >= least for kind, least in KINDS.items()))
    target.communicate("end\n")
    status = sonde.end()
    ok(status == 0, "recorded", sonde.messages)
    trace = Trace(path)
    for kind, least in {**KINDS, "disk_task": 1}.items():
        events = list(trace.events(kind))
        ok(len(mine(trace, kind)) >= least, f"{kind}: events of a thread that existed before the process got its name", len(mine(trace, kind)))
        ok(all(e["pid"] == target.pid for e in events), f"{kind}: no other process has events")
    done()


main()
