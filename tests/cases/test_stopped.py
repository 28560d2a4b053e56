#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=180
# case: right | py-spy, gdb: a process that is stopped looks as if it waited in the call that the stop interrupted |
"""The program was stopped, by which signal or tracer, or was frozen, with which cgroup; and what lets it go on. None of this time is a wait."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

from case import record, finish, say, script, start
from sonde_cli import tables
from tap import ok, skip

WORK = script("t3.py", """import threading
def work(n):
    x = n
    while True:
        x = (x * 31 + 7) % 1000003
for i in range(3): threading.Thread(target=work, args=(i,), daemon=True).start()
import time
print("ready", flush=True)
time.sleep(900)
""")
CGROUP2 = next((line.split()[1] for line in open("/proc/mounts") if line.split()[2] == "cgroup2"), None)


def program():
    return start("/usr/bin/python3", WORK, until="ready")


def causes(trace):
    return {row["cause"]: row["percent"] for row in tables("report", trace)["causes"]}


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def await_state(pid, state):
    deadline = time.monotonic() + 20
    while state_of(pid) != state and time.monotonic() < deadline:
        time.sleep(0.05)


def check(what, pid, kind, sentence, end):
    """All threads of a process that stays as it is are of one kind."""
    trace = record("-d", "1", "-p", pid, name=kind)
    ok(causes(trace).keys() == {kind}, f"{what}: the cause of all time", causes(trace))
    said = say("report", trace)
    ok(re.search(sentence, said), f"{what}: the first sentence", said)
    ok(end in say("report", trace, "why", pid), f"{what}: why", say("report", trace, "why", pid))


stopped = program()
stopped.send_signal(signal.SIGSTOP)
await_state(stopped.pid, "T")
check("SIGSTOP", stopped.pid, "stopped",
      rf"t3.py {stopped.pid} \(3 threads\) was stopped 100% of 1.0\d\d s by a signal in work \(t3.py:\d\)\n    t3.py:\d: .*\n    SIGSTOP\n",
      f"The chain ends here: `kill -CONT {stopped.pid}` lets it go on.")
ok("stopped for " in say("dump", stopped.pid), "sonde dump says for how long")
stopped.kill()

traced = program()
if shutil.which("gdb"):
    gdb = subprocess.Popen(["gdb", "-p", str(traced.pid), "-batch", "-ex", "shell sleep 30"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_state(traced.pid, "t")
    check("gdb", traced.pid, "traced",
          rf"was stopped 100% of 1.0\d\d s by a tracer in work \(t3.py:\d\)\n    t3.py:\d: .*\n    traced by gdb {gdb.pid}\n", "was stopped by a tracer")
    gdb.kill()
    gdb.wait()
else:
    skip("gdb", "there is no gdb")
traced.kill()

frozen, cgroup = program(), os.path.join(CGROUP2 or "", f"sonde-case-{os.getpid()}")
try:
    os.mkdir(cgroup)
    with open(cgroup + "/cgroup.procs", "w", encoding="utf-8") as f:
        f.write(str(frozen.pid))
    with open(cgroup + "/cgroup.freeze", "w", encoding="utf-8") as f:
        f.write("1")
    time.sleep(0.5)
    check("a frozen cgroup", frozen.pid, "frozen",
          r"\(3 threads\) was frozen 100% of 1.0\d\d s with its cgroup in work \(t3.py:\d\)\n    t3.py:\d: .*\n    \S*/sonde-case-\d+\n",
          "0 in cgroup.freeze (v1: THAWED in freezer.state) of this cgroup")
    dumped = say("dump", frozen.pid)
    ok(re.search(r"4 threads; frozen with its cgroup /\S*sonde-case-\d+;", dumped) and dumped.count(": frozen") == 4 - dumped.count("the same"),
       "a frozen cgroup: dump", dumped)
    with open(cgroup + "/cgroup.freeze", "w", encoding="utf-8") as f:
        f.write("0")
except OSError as e:
    skip("a frozen cgroup", f"no cgroup of version 2 can be made: {e}")
frozen.kill()
frozen.wait()
with contextlib.suppress(OSError):
    os.rmdir(cgroup)

# stopped for two of four seconds: these are no waits for the GIL
paused = program()
timer = subprocess.Popen(["/bin/sh", "-c", f"sleep 1.5; kill -STOP {paused.pid}; sleep 2; kill -CONT {paused.pid}"])
trace = record("-d", "4", "--off-cpu", "-p", paused.pid, name="paused")
timer.wait()
found = causes(trace)
ok(45 < found["stopped"] < 55 and 15 < found["gil"] < 45, "stopped in between: the threads waited for the GIL only in the rest", found)
waits = tables("report", trace, "gil")["threads"]
ok(len(waits) == 3 and all(r["wait_ns"] < 2.2e9 and r["max_ns"] < 1e9 for r in waits), "report gil leaves the stop out", waits)
off = sum(r["off_cpu_ns"] for r in tables("report", trace, "stacks")["stacks"])
folded = [line.rsplit(" ", 1) for line in say("export", trace, "--to", "folded", "--event", "off-cpu", "-o", "-").splitlines()]
in_stops = sum(int(ns) for stack, ns in folded if stack.endswith(";-- stopped --"))
ok(5e9 < in_stops < 9e9 and sum(int(ns) for _, ns in folded) - in_stops - off < 0.1e9, "stacks off a CPU leave the stop out, flame graphs name it",
   (in_stops, off, folded))
finish()
