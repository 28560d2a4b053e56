#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | py-spy, austin: idle loops of GLib and Qt, and parents that wait, look like the cause |
"""An event loop of GLib or Qt without events is idle, and a callback that sleeps blocked it. A shell or a thread that starts processes which only
sleep is idle, and is not named before what computes; but if a callback waits for such a process, it blocked the event loop."""
import json
import os
import subprocess
import time

from case import FOLDER, finish, first, record, say, script, start
from pip_packages import install
from tap import ok, skip

LOOP = script("loop.py", """import sys, time
library, name = sys.argv[1:]
def sleep():
    time.sleep(.1)
    return True
def nothing(): return True
ms = 500 if name == "nothing" else 20
print("ready", flush=True)
if library == "glib":
    from gi.repository import GLib
    GLib.timeout_add(ms, globals()[name])
    GLib.MainLoop().run()
from PyQt5.QtCore import QCoreApplication, QTimer
application, timer = QCoreApplication([]), QTimer()
def fire():
    timer.start(ms)
    globals()[name]()
    timer.start(ms)
timer.timeout.connect(fire)
timer.start(ms)
application.exec_()
""")
PARENT = script("parent.py", """import asyncio, os, subprocess, sys, threading, time
def shell():
    while True: subprocess.run(["bash", "-c", "sleep .2; true"])
def system():
    while True: os.system("sleep .1")
async def callback():
    while True:
        subprocess.run(["sleep", ".2"])
        await asyncio.sleep(.001)
def work():
    end = time.thread_time() + .1; x = 0
    while time.thread_time() < end: x = (x * 31 + 7) % 1000003
print("ready", flush=True)
if sys.argv[1] == "callback": asyncio.run(callback())
if sys.argv[1] != "work": threading.Thread(target=globals()[sys.argv[1]], daemon=True).start()
while True:
    work(); time.sleep(.1)
""")


def check_loop(python, library):
    for name, kind in (("nothing", "idle"), ("sleep", "sleep")):
        program = start(python, LOOP, library, name, until="ready")
        time.sleep(0.5)
        found = first(program.pid)
        program.kill()
        ok(found["kind"] == kind and ("it blocked the event loop" in found["text"]) == (name == "sleep"), f"{library}: {name}", found["text"])


def check_parent(program, name, pids):
    report = json.loads(say("report", record("-d", "2", "-p", pids), "--format", "json"))
    causes = {row["cause"] for row in report["tables"]["causes"] if row["pid"] == program.pid}
    ok(report["findings"][0]["code"]["function"] == "work" and "child" not in causes and "idle" in causes, name, causes, report["findings"][0]["text"])


if subprocess.run(["/usr/bin/python3", "-c", "import gi"], capture_output=True, check=False).returncode:
    skip("GLib", "python3-gi is not installed")
else:
    check_loop("/usr/bin/python3", "glib")
qt = os.path.join(FOLDER, "venv/bin/python")
if install(qt, "PyQt5==5.15.11"):
    check_loop(qt, "qt")
else:
    skip("Qt", "PyQt5 can't be installed")
for how in ("shell", "system"):
    parent = start("/usr/bin/python3", PARENT, how, until="ready")
    check_parent(parent, f"a thread that waits for processes: {how}", parent.pid)
    parent.kill()
worker = start("/usr/bin/python3", PARENT, "work", until="ready")
bash = start("bash", "-c", "echo ready; while :; do sleep .2; done", until="ready")
check_parent(bash, "a shell that waits for processes", f"{worker.pid},{bash.pid}")
bash.kill()
worker.kill()
found = first(start("/usr/bin/python3", PARENT, "callback", until="ready").pid)
ok(found["kind"] == "child" and "it blocked the event loop" in found["text"], "a callback that waits for processes", found["text"])
finish()
