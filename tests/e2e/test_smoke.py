#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: smoke
"""One pass over the commands with the distribution's own python3: doctor, record, info, report, export, dump. Exact counts
are other tests' part; here each command must know the program's functions, whichever version runs it."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
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
    ok(done.returncode in statuses, f"sonde {args[0]} ends well", f"{done.returncode}: {done.stdout}{done.stderr}")
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
    ok("parked_here" in dump and "crunch" in dump, "dump: the threads' functions", dump)
    sonde("record", "-p", str(pid), "-d", "2", "-t", "+sched,sample", "-o", "x.sonde")
    ok(str(pid) in (sonde("report", "x.sonde") or ""), "report: the program")
    gil = sonde("report", "x.sonde", "gil") or ""
    ok("crunch" in gil, "report gil: the function that holds it", gil)
    sonde("info", "x.sonde")
    chrome = sonde("export", "x.sonde", "--to", "chrome", "-o", "x.json")
    if chrome is not None:
        with open("x.json", encoding="utf-8") as f:
            events = json.load(f)
        events = events["traceEvents"] if isinstance(events, dict) else events
        ok(any(e.get("pid") == pid and e.get("ph") == "X" for e in events), "export: the program's spans", len(events))


with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as target:
    target.stdout.readline()
    try:
        commands(target.pid)
    finally:
        target.kill()
done()
