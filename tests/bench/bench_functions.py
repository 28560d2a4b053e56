#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_functions: what tracing a Python function costs (--function), in ns per call, for each CPython.

One process calls an empty function that is traced, an equal one that is not, and one that raises an exception, before, during and after
a recording to which it is attached; each figure is the best of ROUNDS loops. "monitoring" is the other way, from 3.12 on: sys.monitoring
with callbacks that do nothing, local to the function's code for its start and return, and PY_UNWIND, which exists only for all code, for
its end by an exception. Nothing here passes or fails.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "probes", "gil"), os.path.join(HERE, "..", "probes", "functions")]
import gil_lib
from functions_lib import record

WORK = r'''
import json, operator, sys, time
ROUNDS, CALLS = 15, 100000
def traced(a):
    return a
def other(a):
    return a
def raises(a):
    raise KeyError
def call_traced():
    for i in range(CALLS):
        traced(i)
def call_other():
    for i in range(CALLS):
        other(i)
def call_raises():
    for i in range(CALLS):
        try:
            raises(i)
        except KeyError:
            pass
def best(f):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        f()
        times.append(time.perf_counter_ns() - start)
    return min(times) / CALLS
def figures():
    return [best(f) for f in (call_traced, call_other, call_raises)]
def monitored():
    if not hasattr(sys, "monitoring"):
        return []
    m, e = sys.monitoring, sys.monitoring.events
    m.use_tool_id(4, "bench")
    m.register_callback(4, e.PY_START, operator.is_)
    m.register_callback(4, e.PY_RETURN, "".format)
    m.register_callback(4, e.PY_UNWIND, "".format)
    m.set_local_events(4, traced.__code__, e.PY_START | e.PY_RETURN)
    m.set_events(4, e.PY_UNWIND)
    got = figures()
    m.set_events(4, 0)
    m.set_local_events(4, traced.__code__, 0)
    m.free_tool_id(4)
    return got
for line in sys.stdin:
    print(json.dumps(monitored() if line.strip() == "monitored" else figures()), flush=True)
'''


def bench(python):
    if python.root != "/":
        return
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "work.py")
        with open(script, "w", encoding="ascii") as f:
            f.write(WORK)
        with subprocess.Popen([python.exe, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            def ask(what="go"):
                print(what, file=program.stdin, flush=True)
                return json.loads(program.stdout.readline())
            ask()
            before = ask()
            sonde = record(os.path.join(folder, "x.sonde"), "-t", "functions", "--inject", "-p", str(program.pid),
                           "--function=__main__:traced", names=["traced"])
            during = ask()
            sonde.end()
            after, monitored = ask(), ask("monitored")
            program.stdin.close()
    print(f"{python.name:12} {'':4}" + " | ".join(" ".join(f"{ns:6.0f}" for ns in figures) for figures in (before, during, after, monitored)), flush=True)


print(f"{'ns per call':17}" + " | ".join(f"{name:20}" for name in ("before", "recorded", "after", "monitoring")))
print(f"{'':17}" + " | ".join(["traced  other raises"] * 4))
gil_lib.each_python("cost", bench)
