#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | py-spy, viztracer: all threads have the name of the interpreter |
"""Reports and exports name threads as Python does: long names, equal ones, ones that are not ASCII or not UTF-8, renamed and late threads, also in
another pid namespace."""
import json
import os

from case import FOLDER, finish, record, run, script, start
from sonde_cli import tables
from tap import ok

PROGRAM = """
import os, threading, time
def spin():
    x = 0
    while True:
        x = (x * 31 + 7) % 1000003
names = ["parser", "uploader", "ThreadPoolExecutor-0_1", "n" * 60, "fr\\u00fch", "twin", "twin", os.fsdecode(b"\\xff"), os.fsdecode(b"\\xfe")]
threads = [threading.Thread(target=spin, name=name, daemon=True) for name in names]
[t.start() for t in threads]
print("begun", os.getpid(), flush=True)
time.sleep(2)
threads[0].name = "renamed"
threading.Thread(target=spin, name="late", daemon=True).start()
time.sleep(600)
"""
RIGHT = sorted(["renamed", "uploader", "ThreadPoolExecutor-0_1", "n" * 60, "fr\u00fch", "twin", "twin", "\\xff", "\\xfe", "late"])


path = script("names.py", PROGRAM)
for where, prefix in ("the host", []), ("a pid namespace", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]):
    program = start(*prefix, "/usr/bin/python3", path, until="begun")
    pid = program.pid
    if prefix:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            pid = int(children.read())
    trace = record("-d", "4", "-t", "+sched", "-p", pid)
    for report in "gil", "timeline", "sched":
        named = {row["tid"]: row["name"] for row in tables("report", trace, report)["threads"] if row["tid"] != pid}
        ok(sorted(named.values()) == RIGHT and all(os.path.isdir(f"/proc/{pid}/task/{tid}") for tid in named), f"{where}: {report}", named)
    out = os.path.join(FOLDER, "x.json")
    assert not run("export", trace, "--to", "chrome", "-o", out, "-f").returncode
    with open(out, encoding="utf-8") as f:
        chrome = {e["tid"]: e["args"]["name"] for e in json.load(f)["traceEvents"] if e["name"] == "thread_name"}
    ok(set(RIGHT) <= set(chrome.values()), f"{where}: Chrome's format", chrome)
    program.kill()
finish()
