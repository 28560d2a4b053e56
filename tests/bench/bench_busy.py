#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Recordings beside busy processes: LOADS spinning processes, or a storm of forks. Medians (worst) of ROUNDS recordings each: the time from the
start of sonde until it traces, the traced time of -d SECONDS, the time from its end to that of sonde, CPU time; and all losses by cause.
"""
import collections
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))
TMP = os.environ.get("TMPDIR", "/tmp")
ROUNDS = int(os.environ.get("ROUNDS", 5))
LOADS = [int(x) if x.isdigit() else x for x in os.environ.get("LOADS", "0 4 10 20 forks").split()]
SECONDS = 2
ALL = "+sched,syscall,disk,net,lock,python,sample,gpu"
SPIN = "while :; do :; done"
FORKS = "while :; do /bin/true & /bin/true & wait; done"


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def one(options):
    """(ms to start, traced s, ms to end, CPU s, {loss: records})"""
    path, used, began, live = os.path.join(TMP, "busy.sonde"), cpu(), time.monotonic(), None
    p = subprocess.Popen([SONDE, "record", "-f", "-o", path, "-d", str(SECONDS), *options], stdin=subprocess.DEVNULL, text=True,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    messages = ""
    for line in p.stderr:
        messages += line
        if "tracing into" in line:
            live = time.monotonic()
    p.wait()
    if live is None or p.returncode not in (0, 3):
        sys.exit(f"sonde record failed: {messages}")
    end = time.monotonic()
    found = json.loads(subprocess.run([SONDE, "info", path, "--format", "json"], capture_output=True, text=True, check=True).stdout)
    lost = collections.Counter()
    for loss in found["losses"]:
        if loss.get("records"):
            lost[(loss["family"], loss["reason"], loss.get("outside"))] += loss["records"]
    return (live - began) * 1e3, found["trace"]["traced_ns"] / 1e9, (end - live - SECONDS) * 1e3, cpu() - used, lost


def figure(values):
    return f"{statistics.median(values):.0f} ({max(values):.0f})"


def main():
    if os.geteuid():
        sys.exit(77)
    print(f"{os.cpu_count()} CPUs, {ROUNDS} recordings each of {SECONDS} s; medians (worst)")
    print(f"{'beside':>8} {'families':>10} {'to start ms':>14} {'traced s':>16} {'to end ms':>14} {'CPU s':>7}  lost")
    for load in LOADS:
        script, n = (FORKS, os.cpu_count()) if load == "forks" else (SPIN, load)
        busy = [subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True) for _ in range(n)]
        try:
            for name, options in (("default", []), ("everything", ["-t", ALL])):
                runs = [one(options) for _ in range(ROUNDS)]
                lost = sum((r[4] for r in runs), collections.Counter())
                traced = [r[1] for r in runs]
                print(f"{load:>8} {name:>10} {figure([r[0] for r in runs]):>14} {f'{min(traced):.3f} to {max(traced):.3f}':>16} "
                      f"{figure([r[2] for r in runs]):>14} {statistics.median(r[3] for r in runs):7.2f}  " +
                      ("; ".join(f"{family}: {n} {reason}{' (outside)' if out else ''}" for (family, reason, out), n in lost.items()) or "nothing"),
                      flush=True)
        finally:
            for p in busy:
                os.killpg(p.pid, 9)
                p.wait()
    shutil.rmtree(os.path.join(TMP, "busy.sonde"), ignore_errors=True)


main()
