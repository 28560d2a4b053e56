#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits
"""Waits for locks of files, by flock() and by fcntl() of both kinds: each program knows who held the lock, where, and how long it waited."""
import json
import os
import subprocess
import tempfile

import bounds
import own_clock
from tap import done, ok, skip_all

SONDE = os.environ["SONDE"]

WORK = """
import fcntl, json, os, signal, struct, sys, time

path, kind, role = sys.argv[1:]
file = open(path, "r+")
OFD_SETLKW = 38

def change(operation):
    if kind == "flock":
        fcntl.flock(file, {"take": fcntl.LOCK_EX, "release": fcntl.LOCK_UN}[operation])
        return
    lock = struct.pack("hhqqi4x", {"take": fcntl.F_WRLCK, "release": fcntl.F_UNLCK}[operation], 0, 0, 0, 0)
    fcntl.fcntl(file, fcntl.F_SETLKW if kind == "posix" else OFD_SETLKW, lock)

def hold():
    change("take")
    begin = time.monotonic_ns()
    time.sleep(0.2)  # held
    spans.append((begin, time.monotonic_ns()))
    change("release")

def awake():
    # the time on a CPU, and the time without one although runnable
    return time.thread_time_ns(), int(os.pread(delays, 99, 0).split()[1])

def need():
    ran, delayed = awake()
    begin = time.monotonic_ns()
    change("take")  # waits
    end = time.monotonic_ns()
    now = awake()
    spans.append((begin, end, now[0] - ran, now[1] - delayed))
    change("release")

spans, delays, ended = [], os.open("/proc/thread-self/schedstat", os.O_RDONLY), False
print("ready", flush=True)
signal.signal(signal.SIGTERM, lambda *_: globals().update(ended=True))
while not ended:
    if role == "holder":
        hold()
        time.sleep(0.02)
    else:
        need()
        time.sleep(0.005)
print(json.dumps(spans))
"""

if os.geteuid():
    skip_all("tracing needs root")


def line_of(mark):
    return next(i for i, line in enumerate(WORK.splitlines(), 1) if line.endswith("# " + mark))


def check(folder, kind):
    script, lock, trace = (os.path.join(folder, name) for name in ("locks.py", "shared.lock", kind + ".sonde"))
    with open(script, "w") as f:
        f.write(WORK)
    with open(lock, "w"):
        pass
    holder, waiter = (subprocess.Popen(["/usr/bin/python3", script, lock, kind, role], stdout=subprocess.PIPE, text=True) for role in ("holder", "waiter"))
    for p in (holder, waiter):
        p.stdout.readline()
    r = subprocess.run([SONDE, "record", "-q", "-d", "3", "-f", "-o", trace, "-p", f"{holder.pid},{waiter.pid}"], capture_output=True, text=True,
                       timeout=60, check=False)
    for p in (waiter, holder):
        p.terminate()
    waits, holds = (json.loads(p.communicate()[0]) for p in (waiter, holder))
    if not ok(r.returncode in (0, 3), f"{kind}: recorded", r.stderr):
        return
    report = json.loads(subprocess.run([SONDE, "report", trace, "--format", "json"], capture_output=True, text=True, check=True).stdout)
    findings = report["findings"]
    found = next((f for f in findings if f.get("kind") == "file-lock"), {})
    ok(found.get("pid") == waiter.pid and found["code"]["function"] == "change", f"{kind}: who waited, and where", found or [f["text"] for f in findings])
    by = found.get("counterpart", {})
    ok(by.get("pid") == holder.pid and by["function"] == "hold" and by["line"] == line_of("held"), f"{kind}: who held the lock, and in which line", found)
    allowed = own_clock.lock_waits(waits, holds, report["trace"]["from_ns"], report["trace"]["to_ns"])
    bounds.between(f"{kind}: the time is that of both programs' own clocks", found.get("lost_ns", 0), *allowed)
    ok("held by hold (locks.py:" in found.get("text", "") and findings.index(found) == 0, f"{kind}: it comes first", [f["text"] for f in findings])


with tempfile.TemporaryDirectory(prefix="sonde-locks-") as place:
    os.chmod(place, 0o755)
    for which in ("flock", "posix", "ofd"):
        check(place, which)
done()
