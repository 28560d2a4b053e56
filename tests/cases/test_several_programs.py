#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240 gate
# case: right | perf, strace: a process that executes one program after the other, by exec of a shell or os.execv |
"""Each program that a process executes has its name, its time and its findings, in reports and exports; `env` and other
programs of less than 0.1 s count with the one that they execute."""
import json
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import engine_lib
import trace_processor
from case import FOLDER, finish, record, say, script
from sonde_cli import tables
from tap import ok, skip

PYTHON = "/usr/bin/python3"
WORK = """import os, sys, threading, time
def {name}():
    x, end = 0, time.monotonic() + 1
    while time.monotonic() < end: x = (x * 31 + 7) % 1000003
threads = [threading.Thread(target={name}) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
with open(sys.argv[0] + ".cpu", "w") as f: f.write(str(time.process_time()))
if sys.argv[1:]: os.execvp(sys.argv[1], sys.argv[1:])
"""


def rows(path, report, table):
    return [r for r in tables("report", path, report)[table] if not str(r.get("name", "")).startswith("Thread-")]


first, second = (script(f"{name}.py", WORK.format(name=name)) for name in ("first_work", "second_work"))
path = record("-F", "99", "--", PYTHON, first, "env", "X=1", PYTHON, second)
got = {r["name"]: (r["pid"], r["cpu_ns"], r["runtimes"]) for r in rows(path, "summary", "processes")}
ok(sorted(got) == ["first_work.py", "second_work.py"] and len({pid for pid, _, _ in got.values()}) == 1, "summary: two programs of one pid", got)
# the process's CPU time, by its own clock: at the end of the first program, of the second
ends = [0]
for name in first, second:
    with open(name + ".cpu", encoding="ascii") as f:
        ends.append(float(f.read()) * 1e9)
truth = {"first_work.py": ends[1], "second_work.py": ends[2] - ends[1]}


def is_right(name, ns):
    """Without the end of the program, which comes after its clock's reading, and its start, which counts for the one before"""
    return abs(int(ns) - truth[name]) < 0.05 * truth[name] + 100e6


ok(all(is_right(name, ns) and "python" in runtimes for name, (_, ns, runtimes) in got.items()), "each has its time and its Python", got, truth)
pid = got["first_work.py"][0]
text = say("report", path)
for name in "first_work", "second_work":
    ok(f"\n{name}.py {pid} " in "\n" + text and f"in {name} ({name}.py:" in text, f"findings of {name}.py", text)
got = rows(path, "processes", "processes")
ok([r["name"].strip() for r in got] == ["first_work.py", "second_work.py"] and got[0]["end_ns"] == got[1]["start_ns"], "processes", got)
got = {r["name"] for r in tables("report", path, "gil")["threads"]}
ok(got >= {"first_work.py", "second_work.py"}, "threads that waited for the GIL", got)
got = {r["name"]: r["run_ns"] for r in rows(path, "sched", "threads") if r["tid"] == pid}
ok(sorted(got) == ["first_work.py", "second_work.py"], "main threads of sched", got)
events = json.loads(say("export", path, "--to", "chrome", "-o", "-"))["traceEvents"]
got = {e["pid"] for e in events if e["name"] == "process_name"}
ok(len(got) == 2, "Chrome's JSON has two processes", got)
library, why = trace_processor.library()
if library:
    out = os.path.join(FOLDER, "x.pftrace")
    say("export", path, "--to", "perfetto", "-o", out)
    with open(out, "rb") as f:
        engine = engine_lib.Engine(library, f.read())
    engine_lib.check_complaints(engine, "Perfetto")
    got = engine.query(f"SELECT cmdline, sum(dur) FROM sched JOIN thread USING(utid) JOIN process p USING(upid) WHERE p.pid = {pid} GROUP BY upid")
    ok([name in command and is_right(name, ns) for name, (command, ns) in zip(truth, got)] == [True, True],
       "Perfetto has two processes, each with its time", got)
else:
    skip("Perfetto", why)

script_of_shell = script("run.sh", f"{PYTHON} {first}\nexec {PYTHON} {second}\n")
got = rows(record("--", "sh", script_of_shell, name="shell"), "processes", "processes")
ok([(r["name"].strip(), r["pid"] == got[0]["pid"]) for r in got] == [("run.sh", True), ("first_work.py", False), ("second_work.py", True)],
   "a shell's child, and the program that replaces the shell", got)
finish()
