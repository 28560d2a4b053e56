#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_tasks: what it costs to follow asyncio tasks. Environment: SECONDS (20).

Programs with 10, 1,000 and 10,000 tasks, of which all but one wait for an event in two coroutines, are recorded. Prints the CPU time of
sonde's child that reads the tasks, with its start, and how far its readings were apart. Nothing here passes or fails.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
import proc_files
from sonde_cli import SONDE
from sonde_trace import Trace

SECONDS = int(os.environ.get("SECONDS", "20"))
WORK = """import asyncio, sys
async def wait(event): await event.wait()
async def handle(event):
    while True: await wait(event)
async def beat():
    while True: await asyncio.sleep(.01)
async def main():
    event = asyncio.Event()
    await asyncio.gather(beat(), *(handle(event) for _ in range(int(sys.argv[1]) - 2)))
asyncio.run(main())
"""


def cpu_ms(sonde):
    """CPU time so far of the child that reads tasks; 0: it does not run"""
    attacher = proc_files.child_named(sonde, "sonde-attacher")
    for pid in proc_files.children(attacher) if attacher else []:
        if (proc_files.status(pid) or {}).get("Name") == "sonde-tasks":
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                return int(f.read().split()[0]) / 1e6
    return 0


def measure(folder, tasks):
    trace, cpu = os.path.join(folder, "x.sonde"), 0
    with subprocess.Popen([sys.executable, "-c", WORK, str(tasks)]) as program:
        time.sleep(3)
        with subprocess.Popen([SONDE, "record", "-f", "-d", str(SECONDS), "-o", trace, "-p", str(program.pid)], stderr=subprocess.DEVNULL) as sonde:
            while sonde.poll() is None:
                cpu = max(cpu, cpu_ms(sonde.pid))
                time.sleep(0.5)
        program.kill()
    periods = {e["time"]: e["period"] / 1e6 for e in Trace(trace).events("sample_tasks")}
    apart = f"{statistics.median(periods.values()):.0f} ms apart" if periods else f"none after the first in {SECONDS} s"
    print(f"{tasks:,} tasks: {cpu:.0f} ms of CPU time in {SECONDS} s, readings {apart}", flush=True)


with tempfile.TemporaryDirectory() as there:
    for number in (10, 1000, 10000):
        measure(there, number)
