#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel reuses a pid within a recording: each of the two processes has its own row, name and figures in the reports, and
its own process in Perfetto."""
import os
import subprocess

import engine_lib
import trace_processor
from export_lib import SONDE, TMP
from sonde_cli import Sonde, tables
from tap import done, ok, skip

LAST_PID = "/proc/sys/kernel/ns_last_pid"
DEAD = 5  # enum sched_state
WRITES = {"first": 7, "second": 19}
# waits for a line, starts processes with one pid that write, and prints the pid; other processes may take the pid
PARENT = f"""
import os, sys
def child(name):
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return pid
    os.write(os.open("/proc/self/comm", os.O_WRONLY), name.encode())
    null = os.open("/dev/null", os.O_WRONLY)
    for _ in range({WRITES!r}[name]):
        os.writev(null, [b"x"])
    os._exit(0)
sys.stdin.readline()
number = child("first")
for _ in range(200):
    with open("{LAST_PID}", "w") as f:
        f.write(str(number - 1))
    pid = os.fork()
    if not pid:
        if os.getpid() == number:
            os.write(os.open("/proc/self/comm", os.O_WRONLY), b"second")
            null = os.open("/dev/null", os.O_WRONLY)
            for _ in range({WRITES!r}["second"]):
                os.writev(null, [b"x"])
        os._exit(0)
    os.waitpid(pid, 0)
    if pid == number:
        print(number, flush=True)
        break
else:
    print(0, flush=True)
sys.stdin.readline()
"""


def record(path):
    """The pid, or 0 if the kernel did not reuse it"""
    target = subprocess.Popen(["/usr/bin/python3", "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    sonde = Sonde(path, "-t", "proc,sched,syscall,disk", "-p", str(target.pid))
    target.stdin.write("\n")
    target.stdin.flush()
    number = int(target.stdout.readline() or 0)
    # a process is still on a CPU when its parent has its status
    sonde.wait_trace(lambda trace: sum(e["pid"] == number and e["state"] == DEAD for e in trace.events("sched_run")) == 2)
    status = sonde.end()
    target.communicate("\n", timeout=60)
    ok(status == 0, "recorded", sonde.messages)
    return number


def rows(path, number, report, table):
    return [r for r in tables("report", path, report, "-p", str(number))[table] if r["pid"] == number]


def main():
    if os.geteuid() or not os.access(LAST_PID, os.W_OK):
        skip("a reused pid", "needs root and " + LAST_PID)
        done()
    path = os.path.join(TMP, "again.sonde")
    number = record(path)
    if not number:
        skip("a reused pid", "other processes took the pid each time")
        done()
    calls = {r["thread"]: r["calls"] for r in rows(path, number, "osrt", "threads") if r["name"] == "writev"}
    ok(calls == WRITES, "each process has its system calls", calls)
    threads = rows(path, number, "sched", "threads")
    ok(sorted(r["name"] for r in threads) == ["first", "second"] and all(r["run_ns"] for r in threads), "each process has its time on a CPU",
       threads)
    faults = rows(path, number, "disk", "processes")
    ok(sorted(r["name"] for r in faults) == ["first", "second"] and all(r["minor_faults"] for r in faults), "each process has its page faults", faults)
    library, why = trace_processor.library()
    if not library:
        skip("Perfetto has two processes", why)
        done()
    out = os.path.join(TMP, "again.pftrace")
    subprocess.run([SONDE, "export", path, "--to", "perfetto", "-f", "-o", out], check=True)
    with open(out, "rb") as f:
        engine = engine_lib.Engine(library, f.read())
    got = engine.query("SELECT p.name, count(*) FROM slice s JOIN thread_track k ON s.track_id = k.id JOIN thread t USING(utid) "
                       f"JOIN process p USING(upid) WHERE pid = {number} AND s.name LIKE '%writev' GROUP BY upid")
    ok({n: int(c) for n, c in got} == WRITES and len(got) == 2, "Perfetto has two processes", got)
    ran = engine.query("SELECT t.name, sum(dur) FROM sched JOIN thread t USING(utid) WHERE tid = {} GROUP BY utid".format(number))
    ok({n: int(d) for n, d in ran} == {r["name"]: r["run_ns"] for r in threads}, "the two processes have their time on CPUs", (ran, threads))
    done()


main()
