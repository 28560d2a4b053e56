#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | gevent, eventlet: the stacks of greenlets do not show the hub that runs them |
"""The greenlet that sleeps, waits or computes blocked the event loop, also if it is the main one, or in place of a thread, or the hub is never seen
to run. A function that the hub gave to a thread of its pool blocks nothing, and a hub without work is idle."""
import os
import subprocess

from case import FOLDER, finish, first, script, start
from pip_packages import install
from tap import ok, skip_all

WORK = script("green.py", """import queue, sys, threading, time
library, name = sys.argv[1:]
if library == "eventlet": import eventlet as green
else: import gevent as green, gevent.monkey
if library == "threads": gevent.monkey.patch_all()
def sleep(): time.sleep(.2)
def wait():
    try: queue.Queue().get(timeout=.2)
    except queue.Empty: pass
def compute():
    x = 1; end = time.time() + .2
    while time.time() < end: x = (x * 31 + 7) % 1000003
def pool(): green.get_hub().threadpool.apply(sleep)
def nothing(): green.sleep(900)
def caller():
    while True:
        globals()[name]()
        green.sleep(.001 if library == "main" else 0)
def tick():
    while name != "nothing": green.sleep(.01)
print("ready", flush=True)
for _ in range(50): green.spawn(tick)
if library == "main": caller()
if library == "threads": threading.Thread(target=caller).start()
else: green.spawn(caller).get() if library == "gevent" else green.spawn(caller).wait()
""")
CASES = [(library, name, kind) for library in ("gevent", "eventlet") for name, kind in (("sleep", ["sleep"]), ("compute", ["compute", "cpu"]))]
CASES += [("main", "sleep", ["sleep"]), ("threads", "compute", ["compute", "cpu"]), ("gevent", "wait", ["queue"])]

python = os.path.join(FOLDER, "venv/bin/python")
if not install(python, "gevent==26.9.0", "eventlet==0.41.3"):
    skip_all("gevent can't be installed")
for library, name, kinds in CASES:
    program = start(python, WORK, library, name, until="ready", stderr=subprocess.DEVNULL)
    found = first(program.pid)
    program.kill()
    blocked = ("it blocked the event loop", "an event loop called it, and was blocked meanwhile")
    ok(found["kind"] in kinds and found["code"]["function"] == name and any(text in found["text"] for text in blocked), f"{library}: {name}", found["text"])
for library, name in (("gevent", "pool"), ("gevent", "nothing"), ("eventlet", "nothing")):
    program = start(python, WORK, library, name, until="ready", stderr=subprocess.DEVNULL)
    found = first(program.pid)
    program.kill()
    ok("event loop" not in found["text"] and found["kind"] in ("idle", "sleep", "result"), f"{library}: {name}", found["text"])
finish()
