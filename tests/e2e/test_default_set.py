#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The families that `sonde record` traces: without -t, with -t +FAMILY, with `-t lean`, and with a list of families."""
import os
import subprocess

import bounds
from recording import workdir
from sonde_cli import Sonde, tables
from sonde_trace import Trace
from tap import done, ok, skip_all

SONDE = os.environ["SONDE"]
LEAN = {"proc", "cuda", "gil", "nccl", "cudadrv", "cublas"}
USUAL = LEAN | {"sched", "sample", "nvml"}
WORK = """
import gc, sys, time
print("ready", flush=True)
sys.stdin.readline()
begin = time.process_time()
for i in range(20):
    gc.collect()
    time.sleep(0.01)
while time.process_time() < begin + 2:
    pass
import colorsys
print(time.process_time() - begin, flush=True)
sys.stdin.readline()
"""

if os.geteuid():
    skip_all("tracing needs root")


def record(*options, before=()):
    """(The families of the trace, its sampling clock, the trace, messages, the program's CPU time in seconds)"""
    path = os.path.join(workdir(), "t.sonde")
    p = subprocess.Popen(["/usr/bin/python3", "-S", "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    sonde = Sonde(path, "-p", str(p.pid), *options, prefix=before, mode=os.environ.get("SONDE_TEST", ""))
    p.stdin.write("go\n")
    p.stdin.flush()
    computed = float(p.stdout.readline())
    p.stdin.close()
    p.wait()
    sonde.end(None)
    trace = Trace(path)
    clock = [(e["period"], e["threshold"]) for e in trace.events("sample_clock")]
    return set(trace.head["run"]["families"].split(",")), clock[-1] if clock else None, trace, sonde.messages, computed


families, clock, trace, err, seconds = record()
ok(families == USUAL, "without -t: the default set", f"{families} {err}")
ok(clock == (1_000_000_000 // 49, 1_000_000), "49 samples per second, and waits of at least 1 ms", clock)


def check_waits(trace, how=""):
    waits = [e for e in trace.events("sample_off") if e.get("in_call") and e.get("timeout", 0) > 0]
    ok(len(waits) >= 20 and all(e.get("stack", 0) for e in waits), f"waits have stacks{how}", len(waits))


check_waits(trace)
rows = tables("report", os.path.join(workdir(), "t.sonde"), "summary")["processes"]
seen = {f for r in rows for f in (r.get("families") or "").split(",")}
ok("sample" in seen and "syscall" not in seen, "a family that is off probes no process", seen)
bounds.count("running code is sampled", len(list(trace.events("sample_cpu"))), 49 * seconds, systematic=1,
             why="the end of the program takes less than 20 ms")
ok(not list(trace.events("python_gc")), "garbage collections are not recorded")
ok(list(trace.events("sched_run")), "the scheduler is recorded")
ok(not list(trace.events("syscall")), "system calls are not recorded")
for switches in "no-sched-exit", "no-sched-exit,no-fexit":
    families, clock, trace, err, _ = record(before=["env", "SONDE_TEST=" + switches])
    ok(families == USUAL, f"a kernel before 6.15: the same set ({switches})", f"{families} {err}")
    check_waits(trace, f", before 6.15, too ({switches})")
families, clock, trace, err, _ = record("-t", "+python", "-F", "99", "--off-cpu=5000000")
ok(families == USUAL | {"python"} and clock == (1_000_000_000 // 99, 5_000_000), "-F and --off-cpu override the values of the default set",
   f"{families} {clock}")
ok(any("colorsys" in str(e["module"]) for e in trace.events("python_import")), "-t +python adds imports")
ok(len(list(trace.events("python_gc"))) >= 20, "and garbage collections", len(list(trace.events("python_gc"))))
# the limit is set in a mount namespace only, as other recordings depend on the machine's
with open(os.path.join(workdir(), "rate"), "w", encoding="ascii") as f:
    f.write("30\n")
limited = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/perf_event_max_sample_rate && exec "$@"', f.name]
families, clock, trace, err, _ = record(before=limited)
ok(families == USUAL and clock == (1_000_000_000 // 30, 1_000_000), "a lower sampling limit of the system is respected", f"{families} {clock} {err}")
families, clock, trace, err, _ = record("-t", "lean")
ok(families == LEAN and not clock, "-t lean: families that cost nothing while nothing happens", f"{families} {clock} {err}")
families, clock, trace, err, _ = record("-t", "gil,sched")
ok(families == {"proc", "gil", "sched"} and not clock, "-t A,B: only these families", f"{families} {clock}")
families, clock, trace, err, _ = record("-t", "lean,sched", "-F", "99")
ok(families == LEAN | {"sched", "sample"} and clock == (1_000_000_000 // 99, 0), "-t lean,FAMILY adds a family", f"{families} {clock}")
done()
