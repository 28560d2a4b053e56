#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | py-spy, scalene: an application below a folder with the name of a library |
"""`slow (train.py:3)` is in the first line of the summary and of `gil`, wherever train.py lies: below lib/python3.11, in site-packages, in a folder with a
blank; the process is called train.py. A queue.py of the user's own waits for a lock, and is not idle as that of the standard library."""
import time

from case import finish, record, say, script, start
from tap import ok

TRAIN = """import json, sys, threading
def slow(big):
    return json.JSONEncoder(indent=1).encode(big)
def main():
    big = [{"n": i, "s": "x%d" % i} for i in range(20000)]
    def loop():
        while True:
            slow(big)
    threading.Thread(target=loop, daemon=True).start()
    loop()
main()
"""
QUEUE = """import threading, time
def hold():
    while True:
        with lock:
            time.sleep(.2)
def get():
    while True:
        with lock:
            pass
lock = threading.Lock()
threading.Thread(target=hold, daemon=True).start()
get()
"""
FOLDERS = ("app", "lib/python3-tools", "app/lib/python3.11/myapp", "lib/python3utils", "lib/python3.11/site-packages/myapp", "my app")

for folder in FOLDERS:
    program = start("/usr/bin/python3", script(folder + "/train.py", TRAIN))
    time.sleep(0.5)
    trace = record("-d", "1", "-p", program.pid)
    program.kill()
    for report in "summary", "gil":
        line = say("report", trace, report).split("\n")[0]
        ok("train.py:3" in line and ("slow" in line) and (report == "gil" or line.startswith("train.py ")), f"{folder}: {report}", line)

program = start("/usr/bin/python3", script("app/queue.py", QUEUE))
time.sleep(0.5)
lines = say("report", record("-d", "2", "-p", program.pid)).split("\n\n")[0]
ok("for a lock in get (queue.py:" in lines, "a file named as a module of the standard library", lines)
finish()
