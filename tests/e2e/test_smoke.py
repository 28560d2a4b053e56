#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: smoke
"""Runs doctor, record, info, report, export and dump on the distribution's own python3. Other tests check exact counts; here each
command must show the program's functions, with every version of Python."""
import json
import os
import subprocess
import sys

from tap import done, ok

SONDE = os.environ["SONDE"]
os.chdir(os.environ["TMPDIR"])
PROGRAM = """
import threading

def parked_here():
    threading.Event().wait()
def crunch():
    while True:
        sum(range(1000))
for f in (parked_here, crunch, crunch):
    threading.Thread(target=f, daemon=True).start()
print(flush=True)
threading.Event().wait()
"""


def sonde(*args, statuses=(0,)):
    """Standard output, or None"""
    done = subprocess.run([SONDE, *args], capture_output=True, text=True, timeout=60)
    ok(done.returncode in statuses, f"sonde {args[0]} succeeds", f"{done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout if done.returncode in statuses else None


def tables(text):
    try:
        return json.loads(text)["tables"]
    except (TypeError, ValueError, KeyError):
        return {}


def commands(pid):
    families = tables(sonde("doctor", "--format", "json", statuses=(0, 3))).get("families", [])
    usable = {f["name"]: f["usable"] == "yes" for f in families}
    ok(usable.get("sched") and usable.get("gil"), "doctor: the scheduler and the GIL can be traced", families)
    dump = sonde("dump", str(pid)) or ""
    ok("parked_here" in dump and "crunch" in dump, "dump: it prints the threads' functions", dump)
    sonde("record", "-p", str(pid), "-d", "2", "-t", "+sched,sample", "-o", "x.sonde")
    ok(str(pid) in (sonde("report", "x.sonde") or ""), "report: it names the program")
    gil = sonde("report", "x.sonde", "gil") or ""
    ok("crunch" in gil, "report gil: it names the function that holds the GIL", gil)
    sonde("info", "x.sonde")
    chrome = sonde("export", "x.sonde", "--to", "chrome", "-o", "x.json")
    if chrome is not None:
        with open("x.json", encoding="utf-8") as f:
            events = json.load(f)
        events = events["traceEvents"] if isinstance(events, dict) else events
        ok(any(e.get("pid") == pid and e.get("ph") == "X" for e in events), "export: it has the program's spans", len(events))


with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as target:
    target.stdout.readline()
    try:
        commands(target.pid)
    finally:
        target.kill()
done()
