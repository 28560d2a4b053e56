#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The CPU time that a recording reports of itself is that of all of sonde's processes in /proc.

The test maps new libraries, so that the opener, the attacher and the children that parse files have work, and then waits until
the recording has figures before and after. The figure of /proc must lie between the last one before and the first one after,
within the clock ticks in which /proc counts.
"""
import os
import re
import subprocess
import time

from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

B, SONDE, TMP = (os.environ[n] for n in ("B", "SONDE", "TMPDIR"))
STORM = os.path.join(B, "tests", "workloads", "storm")
FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def tree(root):
    """{pid: (name, ns of CPU time, ns of its ended children)} of a process and its descendants, without the load generator"""
    all_, found = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                text = f.read()
        except OSError:
            continue
        rest = text[text.rindex(")") + 2:].split()
        name = text[text.index("(") + 1:text.rindex(")")]
        all_[int(pid)] = (int(rest[1]), (name, (int(rest[11]) + int(rest[12])) * TICK, (int(rest[13]) + int(rest[14])) * TICK))
    pids = [root]
    for pid in pids:
        found[pid] = all_[pid][1]
        pids += [p for p, (parent, _) in all_.items() if parent == pid]
    return found


def total(processes, root):
    """The total. Children that ended before the recording began, such as feature tests and searches for files, count for the worker."""
    return sum(own + (0 if pid == root else ended) for pid, (_, own, ended) in processes.items())


def main():
    if not os.access(STORM, os.X_OK) or not os.path.exists(FAKE):
        skip_all("the program or the library of the test is not built")
    path = f"{TMP}/cost.sonde"
    sonde = Sonde(path, "-t", "proc,cuda")
    child = sonde.process
    subprocess.run([STORM, "keep", "1", TMP, FAKE], stdout=subprocess.DEVNULL, check=True)
    sonde.wait_trace(lambda trace: list(trace.events("meta_cost")))
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    processes = tree(child.pid)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    sonde.wait_trace(lambda trace: any(e["time"] >= after for e in trace.events("meta_cost")))
    sonde.end()
    names = {name for name, _, _ in processes.values()}
    ok({"sonde-attacher", "sonde-examiner", "sonde-opener"} <= names, "the recording has processes beside the worker", names)
    costs = [(e["time"], e["user"] + e["system"] + e["children"], e["children"]) for e in Trace(path).events("meta_cost")]
    low = [sum_ for at, sum_, _ in costs if at <= before]
    high = [sum_ for at, sum_, _ in costs if at >= after]
    there, ticks = total(processes, child.pid), 2 * TICK * len(processes)
    ok(low and high and low[-1] - ticks <= there <= high[0] + ticks, "the trace has the CPU time of all processes",
           f"{costs} {processes}")
    others = sum(own + ended for pid, (_, own, ended) in processes.items() if pid != child.pid)
    ok(high and high[0] and others > ticks and costs[-1][2] >= others - ticks, "the CPU time of processes other than the worker is counted",
           f"{costs[-1]} {others}")
    # the CPU time of the start is not part of the traced time
    begun, wall = costs[0][1], max(e["wall"] for e in Trace(path).events("meta_cost"))
    printed = re.search(r"sonde itself took ([0-9.]+)%", sonde.messages)
    least = 100 * (costs[-1][1] - begun - ticks) / (wall + 1_000_000_000)
    ok(printed and float(printed[1]) >= least, "the last line has the total", f"{least} {sonde.messages[-600:]}")


main()
done()
