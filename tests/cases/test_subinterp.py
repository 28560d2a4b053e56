#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=180
# case: partly | py-spy: sub-interpreters, from 3.12 on each with its GIL | Callers in another interpreter are missing
"""`gil` says of which interpreter each GIL is, by Python's number. A program with one interpreter has no numbers."""
import glob
import json
import os

from case import finish, record, say, script, start
from tap import ok, skip_all

PROGRAM = script("sub.py", '''import sys, threading
try: import _interpreters as interpreters
except ImportError: import _xxsubinterpreters as interpreters
CRUNCH = """
import threading
def crunch%d():
    x = 0
    while True: x = (x * 31 + 7) %% 1000003
threads = [threading.Thread(target=crunch%d) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
for i in range(int(sys.argv[1])):
    number = interpreters.create()
    threading.Thread(target=interpreters.run_string, args=(number, CRUNCH % (number, number))).start()
threading.Thread(target=exec, args=(CRUNCH % (0, 0),)).start()
print("ready", flush=True)
threading.Event().wait()
''')


def check_one(text, tables):
    is_without = "nterpreter 0" not in text and "Interpreter" not in text
    ok(is_without and all(row["interpreter"] is None for row in tables["interpreters"]), "a program with one interpreter has no numbers", text)


def check_several(text, tables):
    numbers = {row["interpreter"] for row in tables["interpreters"]}
    ok(numbers == {0, 1, 2} and all(f", interpreter {i}: for " in text for i in numbers), "each GIL has its interpreter's number", text)
    of = [(row["interpreter"], row[side]) for row in tables["blame"] for side in ("holder", "waiter") if "crunch" in row[side]]
    ok(of and not [row for row in of if not row[1].endswith(f"crunch{row[0]}")], "code waits for the GIL of its own interpreter", of)
    of = [(row["interpreter"], row["name"]) for row in tables["threads"] if "crunch" in row["name"]]
    ok(of and not [row for row in of if f"(crunch{row[0]})" not in row[1]], "so do threads", of)


PYTHONS = [path for minor in ("2", "3", "4", "5") for folder in ("/usr/bin/", os.path.expanduser("~/.pyenv/versions/*/bin/"))
           for path in glob.glob(f"{folder}python3.1{minor}")]
if not PYTHONS:
    skip_all("no CPython 3.12 or later")
for python in PYTHONS:
    for n, check in (0, check_one), (2, check_several):
        program = start(python, PROGRAM, str(n), until="ready")
        trace = record("-d", "2", "-t", "+gil", "-p", program.pid)
        check(say("report", trace, "gil"), json.loads(say("report", trace, "gil", "--format", "json"))["tables"])
        program.kill()
finish()
