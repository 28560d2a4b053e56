#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300 waits gate
"""Python functions named by the user, in each CPython, started or already running: as many calls as cProfile counts, and all as before."""
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import functions_work as work
import gil_lib
from functions_lib import HERE, MISSING, REFUSED, Calls, options, record
from tap import done, ok

ROUNDS = 3
PROGRAM = os.path.join(HERE, "functions_work.py")
tmp = tempfile.mkdtemp(prefix="sonde-functions-")


def expected(profiled):
    """What cProfile counts; it counts each resume of a generator, and only one thread."""
    of_threads = {"generate": 1, "coroutine": 1, "in_thread": work.THREADS * work.PER_THREAD, "thread": work.THREADS}
    return {name: ROUNDS * of_threads.get(name, profiled[name]) for name in work.NAMES}


def check_counts(calls, profiled, which):
    got = {name: calls.counts[f"__main__:{name}"] for name in work.NAMES}
    right = expected(profiled)
    ok(got == right, f"as many calls as cProfile counts: {which}", {n: (got[n], right[n]) for n in got if got[n] != right[n]})
    failed = {name: calls.failed[f"__main__:{name}"] for name in work.NAMES if calls.failed[f"__main__:{name}"]}
    ok(failed == {name: n * ROUNDS for name, n in work.EXCEPTIONS.items()}, f"exceptions: {which}", failed)
    ok(not list(calls.trace.events("functions_dropped")) and not list(calls.trace.events("meta_loss")), f"nothing lost: {which}")


def check_nested(calls, which):
    """Spans of a thread are nested"""
    threads, crossed = {}, 0
    for e in sorted(calls.spans, key=lambda e: (e["start"], -e["time"])):
        open_ = threads.setdefault(e["tid"], [])
        while open_ and open_[-1] <= e["start"]:
            open_.pop()
        crossed += bool(open_) and e["time"] > open_[-1]
        open_.append(e["time"])
    ok(len(threads) == 1 + ROUNDS * work.THREADS and not crossed, f"spans are nested in each thread: {which}", len(threads), crossed)


def command_of(python):
    """Of another root only the files are used: without a /proc there, the process could not open the shim's memfd."""
    if python.root == "/":
        return [python.exe, PROGRAM], dict(os.environ)
    libraries = ":".join(python.root + folder for folder in ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu"))
    return [python.root + "/lib64/ld-linux-x86-64.so.2", "--library-path", libraries, python.root + python.exe, "-S", PROGRAM], dict(
        os.environ, PYTHONHOME=python.root + "/usr")


def attached(python):
    path = os.path.join(tmp, python.name.replace(" ", "-") + ".sonde")
    command, env = command_of(python)
    with subprocess.Popen([*command, str(ROUNDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as program:
        program.stdout.readline()
        sonde = record(path, "-t", "functions", "--inject", "-p", str(program.pid), *options(work.NAMES + work.REFUSED + work.MISSING),
                       names=work.NAMES)
        print("go", file=program.stdin, flush=True)
        program.stdout.readline()
        status = sonde.end()
        calls = Calls(path)
        print("end", file=program.stdin, flush=True)
        same, profiled = json.loads(program.stdout.readline())
    ok(status == 0, f"the recording ends well: {python.name}", sonde.messages)
    check_counts(calls, profiled, f"attached, {python.name}")
    check_nested(calls, f"attached, {python.name}")
    ok(same, f"vectorcall, code, profilers and tools are as before: {python.name}")
    ok(calls.names(REFUSED) == {f"__main__:{n}" for n in work.REFUSED if n != "int"} and
       calls.names(MISSING) == {f"__main__:{n}" for n in work.MISSING + ["int"]}, f"refused and missing ones: {python.name}", calls.states)


def launched(python):
    path = os.path.join(tmp, "launched-" + python.name.replace(" ", "-") + ".sonde")
    if python.root != "/":
        return
    profiled = json.loads(subprocess.run([python.exe, PROGRAM, "0"], input="\n\n", stdout=subprocess.PIPE, text=True,
                                         check=True).stdout.splitlines()[-1])[1]
    sonde = record(path, "-t", "functions", *options(work.NAMES), "--", python.exe, PROGRAM, str(ROUNDS), "1.5", stdout=subprocess.DEVNULL)
    ok(sonde.end(None) == 0, f"the recording ends with the program: {python.name}", sonde.messages)
    check_counts(Calls(path), profiled, f"launched, {python.name}")


FORKER = """
import os, sys, time
def called(n):
    return n
print("ready", flush=True)
sys.stdin.readline()
child = os.fork()
if not child:
    print(os.getpid(), flush=True)
sys.stdin.readline()
for i in range(100 if child else 1000):
    called(i)
if child:
    os.wait()
"""


def forked():
    """A child of fork inherits the intercepted functions. Parent and child read a line each."""
    path = os.path.join(tmp, "forked.sonde")
    with subprocess.Popen([sys.executable, "-u", "-c", FORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        program.stdout.readline()
        sonde = record(path, "-t", "functions", "--inject", "-p", str(program.pid), *options(["called"]), names=["called"])
        print("fork", file=program.stdin, flush=True)
        child = int(program.stdout.readline())
        ok(sonde.wait_trace(lambda trace: any(e["pid"] == child for e in trace.events("functions_named"))), "the child is recorded, too")
        program.communicate("go\ngo\n")
        sonde.end(None)
    pids = [e["pid"] for e in Calls(path).spans]
    ok((pids.count(program.pid), pids.count(child)) == (100, 1000), "calls of a parent and of its child", collections.Counter(pids))


gil_lib.each_python("attached", attached)
forked()
gil_lib.each_python("launched", launched)
done()
