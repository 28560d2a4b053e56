# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the benchmarks of costs: recording a process, sonde's own counters, medians with an interval."""
import glob
import json
import os
import random
import signal
import statistics
import subprocess

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
B = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(B, "sonde"))


def attach(pid, options, out):
    """Starts `sonde record` of a process. Returns it once its probes are attached."""
    p = subprocess.Popen([SONDE, "record", *options, "-f", "-o", out, "-p", str(pid)], stdin=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, universal_newlines=True)
    while "tracing into" not in (p.stderr.readline() or "tracing into"):
        pass
    return p


def end(p):
    p.send_signal(signal.SIGINT)
    try:
        p.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        p.kill()
        p.communicate()


def costs(out):
    """(probe hits, their cost as a share of the wall time) of a trace"""
    info = json.loads(subprocess.run([SONDE, "info", out, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)
    cost = info["tables"]["cost"][-1]
    return cost["hits"], cost["probes_ns"] / cost["wall_ns"]


def family(pid):
    """The process and its descendants"""
    todo, found = [pid], []
    while todo:
        pid = todo.pop()
        found.append(pid)
        for path in glob.glob(f"/proc/{pid}/task/*/children"):
            try:
                with open(path) as f:
                    todo += map(int, f.read().split())
            except OSError:
                pass
    return found


def bpf_run_ns(pid):
    """The run time so far of the BPF programs that these processes have open; 0 while kernel.bpf_stats_enabled is 0"""
    programs = {}
    for p in family(pid):
        for path in glob.glob(f"/proc/{p}/fdinfo/*"):
            try:
                with open(path) as f:
                    fields = dict(line.split(":", 1) for line in f if ":" in line)
            except OSError:
                continue
            if "run_time_ns" in fields:
                programs[int(fields["prog_id"])] = int(fields["run_time_ns"])
    return sum(programs.values())


def interval(values, middle=statistics.median):
    """The 95% bootstrap interval of the median"""
    some = sorted(middle(random.choices(values, k=len(values))) for _ in range(2000))
    return some[50], some[-51]
