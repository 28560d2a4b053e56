#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits
"""Waits for locks of files, by flock() and by fcntl() of both kinds: each program knows who held the lock, where, and how long it waited."""
import json
import os
import subprocess
import tempfile

from tap import done, ok, skip_all

SONDE = os.environ["SONDE"]

WORK = """
import fcntl, os, struct, sys, time

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
    time.sleep(0.2)  # held
    change("release")

def need():
    global waited
    begin = time.monotonic()
    change("take")  # waits
    waited += time.monotonic() - begin
    change("release")

waited = 0
print("ready", flush=True)
begin = time.monotonic()
while time.monotonic() < begin + 5:
    if role == "holder":
        hold()
        time.sleep(0.02)
    else:
        need()
        time.sleep(0.005)
print(waited / (time.monotonic() - begin))
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
    truth = 100 * float(waiter.communicate()[0])
    holder.communicate()
    if not ok(r.returncode in (0, 3), f"{kind}: recorded", r.stderr):
        return
    findings = json.loads(subprocess.run([SONDE, "report", trace, "--format", "json"], capture_output=True, text=True, check=True).stdout)["findings"]
    found = next((f for f in findings if f.get("kind") == "file-lock"), {})
    ok(found.get("pid") == waiter.pid and found["code"]["function"] == "change", f"{kind}: who waited, and where", found or [f["text"] for f in findings])
    by = found.get("counterpart", {})
    ok(by.get("pid") == holder.pid and by["function"] == "hold" and by["line"] == line_of("held"), f"{kind}: who held the lock, and in which line", found)
    ok(abs(found.get("share_percent", 0) - truth) < 8, f"{kind}: the share of the waiter's time is that of its own clock ({truth:.0f}%)",
       found.get("share_percent"))
    ok("held by hold (locks.py:" in found.get("text", "") and findings.index(found) == 0, f"{kind}: it comes first", [f["text"] for f in findings])


with tempfile.TemporaryDirectory(prefix="sonde-locks-") as place:
    os.chmod(place, 0o755)
    for which in ("flock", "posix", "ofd"):
        check(place, which)
done()
