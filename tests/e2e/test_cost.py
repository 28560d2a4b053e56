#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a recording says that it took itself is the CPU time of all of sonde's processes, as /proc has it.

New libraries are mapped, so that the opener, the attacher and the children that parse files have work; then the machine's other
programs may go on, but nothing of the recording has to. The figures of /proc lie between those that the trace has of the second
before and the second after, but for the ticks in which /proc counts.
"""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sonde_trace import Trace
from tap import done, ok, skip_all

B, SONDE, TMP = (os.environ[n] for n in ("B", "SONDE", "TMPDIR"))
STORM = os.path.join(B, "tests", "workloads", "storm")
FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def tree(root):
    """{pid: (name, ns of CPU time, ns of its ended children)} of a process and what it started, but for the storm"""
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
    """What ended before the recording began is the worker's: features were tried, the disk was searched."""
    return sum(own + (0 if pid == root else ended) for pid, (_, own, ended) in processes.items())


def main():
    if not os.access(STORM, os.X_OK) or not os.path.exists(FAKE):
        skip_all("the program or the library of the test is not built")
    path = f"{TMP}/cost.sonde"
    child = subprocess.Popen([SONDE, "record", "-f", "-o", path, "-t", "proc,cuda"], stderr=subprocess.PIPE, universal_newlines=True)
    for line in child.stderr:
        if "tracing into" in line:
            break
    subprocess.run([STORM, "keep", "1", TMP, FAKE], stdout=subprocess.DEVNULL, check=True)
    time.sleep(1.2)
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    processes = tree(child.pid)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    time.sleep(1.2)
    child.send_signal(signal.SIGINT)
    err = child.communicate(timeout=60)[1]
    names = {name for name, _, _ in processes.values()}
    ok({"sonde-attacher", "sonde-examiner", "sonde-opener"} <= names, "the recording has processes beside the worker", names)
    costs = [(e["time"], e["user"] + e["system"] + e["children"], e["children"]) for e in Trace(path).events("meta_cost")]
    low = [sum_ for at, sum_, _ in costs if at <= before]
    high = [sum_ for at, sum_, _ in costs if at >= after]
    there, ticks = total(processes, child.pid), 2 * TICK * len(processes)
    ok(low and high and low[-1] - ticks <= there <= high[0] + ticks, "the trace has the CPU time of all of them",
           f"{costs} {processes}")
    others = sum(own + ended for pid, (_, own, ended) in processes.items() if pid != child.pid)
    ok(high and high[0] and others > ticks and costs[-1][2] >= others - ticks, "that of the others is counted",
           f"{costs[-1]} {others}")
    # what it took until it was live is not of the traced time
    begun, wall = costs[0][1], max(e["wall"] for e in Trace(path).events("meta_cost"))
    printed = re.search(r"sonde itself took ([0-9.]+)%", err)
    least = 100 * (costs[-1][1] - begun - ticks) / (wall + 1_000_000_000)
    ok(printed and float(printed[1]) >= least, "the line at the end has it all", f"{least} {err[-600:]}")


main()
done()
