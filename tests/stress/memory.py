#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/stress/memory.py [MINUTES]: records the whole machine with all families while tests/stress/churn.py runs beside it, an hour or
MINUTES, and prints what memory each process of sonde has, a line a minute. Fails unless it is flat after the warm-up.

The warm-up is a third of the time, 15 minutes at most. Flat: the line that fits the worker's figures after it best rises by less
than 0.2 MiB a minute, and the attacher's and the opener's by less than 0.05. The same is printed of what the worker's allocator has
in use, by the trace. SONDE names another program.
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sonde_trace import Trace

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
FAMILIES = "+sched,+syscall,+disk,+net,+lock,+python,+gpu"
LIMITS = {"sonde": 0.2, "sonde-attacher": 0.05, "sonde-opener": 0.05}  # MiB a minute
STEP = 5  # seconds between two looks


def processes(pid):
    """The process, its children and theirs: {pid: (name, KiB resident)}"""
    all_, found = {}, {}
    for other in [str(pid), *filter(str.isdigit, os.listdir("/proc"))]:
        try:
            with open(f"/proc/{other}/status") as f:
                status = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
        except OSError:
            continue
        if "VmRSS" in status:
            all_[int(other)] = (status["Name"].strip(), int(status["PPid"]), int(status["VmRSS"].split()[0]))
    for other, (name, parent, kib) in all_.items():
        if other == pid:
            found[other] = ("sonde", kib)
        elif parent == pid or all_.get(parent, ("", 0))[1] == pid:
            found[other] = (name, kib)
    return found


def heap(path):
    """[(minute, MiB that the worker's allocator has in use)]"""
    trace = Trace(path)
    tables = {e["string"]: e["text"] for e in trace.events("meta_string") if e["text"] == "heap in use"}
    sizes = [(e["time"], e["bytes"]) for e in trace.events("meta_table") if e["table"] in tables]
    return [((time - sizes[0][0]) / 60e9, size / (1 << 20)) for time, size in sizes]


def slope(points):
    """Of the line of least squares"""
    n = len(points)
    x, y = sum(p[0] for p in points) / n, sum(p[1] for p in points) / n
    square = sum((p[0] - x) ** 2 for p in points)
    return sum((p[0] - x) * (p[1] - y) for p in points) / square if square else 0


def watch(sonde, minutes):
    """{name: [(minute, MiB)]}, printed as they come"""
    figures, began, shown = {}, time.monotonic(), -1
    while sonde.poll() is None and time.monotonic() < began + 60 * minutes:
        time.sleep(STEP)
        minute = (time.monotonic() - began) / 60
        now = {name: kib / 1024 for name, kib in processes(sonde.pid).values()}
        for name, mib in now.items():
            figures.setdefault(name, []).append((minute, mib))
        if int(minute) > shown:
            shown = int(minute)
            load = os.getloadavg()[0]
            print(f"{shown:4} min  " + "  ".join(f"{n} {m:7.1f} MiB" for n, m in sorted(now.items())) + f"  load {load:.1f}",
                  flush=True)
    return figures


def end(child):
    if child.poll() is None:
        child.send_signal(signal.SIGINT if child.args[0] == SONDE else signal.SIGTERM)
    try:
        child.wait(60)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory(prefix="sonde-stress-") as folder:
        argv = [SONDE, "record", "-t", FAMILIES, "-F", "99", "--off-cpu", "--cuda=stacks", "-f", "-o", f"{folder}/trace"]
        with open(f"{folder}/log", "w+") as log:
            sonde = subprocess.Popen(argv, stdout=log, stderr=log)
            time.sleep(3)
            churn = subprocess.Popen([os.path.join(ROOT, "tests", "stress", "churn.py"), folder], stdout=subprocess.PIPE,
                                     universal_newlines=True)
            try:
                figures = watch(sonde, minutes)
            finally:
                end(churn)
                end(sonde)
            log.seek(0)
            print(log.read(), end="")
        in_use = heap(f"{folder}/trace")
    print(f"{churn.stdout.read().strip()} rounds of churn, sonde's exit status {sonde.returncode}")
    failed = sonde.returncode not in (0, 3)
    warm = min(15, minutes / 3)
    for name, points in [*sorted(figures.items()), ("heap in use", in_use)]:
        late = [p for p in points if p[0] >= warm]
        if (name not in LIMITS and points is not in_use) or len(late) < 2:
            continue
        rise = slope(late)
        bad = rise > LIMITS.get(name, 1e9)
        failed |= bad
        print(f"{name}: {points[0][1]:.1f} MiB at first, {late[0][1]:.1f} after {warm:.0f} min, {late[-1][1]:.1f} at the end: "
              f"{rise:+.3f} MiB a minute{', not flat' if bad else ''}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
