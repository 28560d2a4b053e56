#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel gives a process the number of another one that has ended, while both are traced: each has its own row, name and
figures in the reports, and its own process in Perfetto."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import engine_lib
import trace_processor
from export_lib import SONDE, TMP
from tap import done, ok, skip

LAST_PID = "/proc/sys/kernel/ns_last_pid"
WRITES = {"first": 7, "second": 19}
# waits for a line, has processes of one number write, and says the number; others may take it meanwhile
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
    """The number, 0 if it could not be had again."""
    target = subprocess.Popen(["/usr/bin/python3", "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tracer = subprocess.Popen([SONDE, "record", "-f", "-o", path, "-t", "proc,sched,syscall,disk", "-p", str(target.pid)],
                              stderr=subprocess.PIPE, text=True)
    line = tracer.stderr.readline()
    while line and "tracing into" not in line:
        line = tracer.stderr.readline()
    target.stdin.write("\n")
    target.stdin.flush()
    number = int(target.stdout.readline() or 0)
    time.sleep(0.2)
    tracer.send_signal(signal.SIGINT)
    tracer.communicate(timeout=60)
    target.communicate("\n", timeout=60)
    ok(tracer.returncode == 0, "recorded", line)
    return number


def rows(path, number, report, table):
    out = subprocess.run([SONDE, "report", path, report, "-p", str(number), "--format", "json"], capture_output=True, text=True,
                         check=True)
    return [r for r in json.loads(out.stdout)["tables"][table] if r["pid"] == number]


def main():
    if os.geteuid() or not os.access(LAST_PID, os.W_OK):
        skip("a number that is used again", "needs root and " + LAST_PID)
        done()
    path = os.path.join(TMP, "again.sonde")
    number = record(path)
    if not number:
        skip("a number that is used again", "other processes took it each time")
        done()
    calls = {r["thread"]: r["calls"] for r in rows(path, number, "osrt", "threads") if r["name"] == "writev"}
    ok(calls == WRITES, "system calls of each", calls)
    threads = rows(path, number, "sched", "threads")
    ok(sorted(r["name"] for r in threads) == ["first", "second"] and all(r["run_ns"] for r in threads), "time on a CPU of each",
       threads)
    faults = rows(path, number, "disk", "processes")
    ok(sorted(r["name"] for r in faults) == ["first", "second"] and all(r["minor_faults"] for r in faults), "page faults of each", faults)
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
    ok({n: int(d) for n, d in ran} == {r["name"]: r["run_ns"] for r in threads}, "and their time on CPUs", (ran, threads))
    done()


main()
