#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/stress/memory.py [MINUTES [TRACE]]: records the whole machine with all families while tests/stress/churn.py runs beside it, an
hour or MINUTES, and prints the memory of each process of sonde every minute. Fails unless it is flat after the warm-up.

The warm-up is a third of the time, at most 15 minutes. Flat means that a least-squares line through the means of the worker's minutes
rises by less than 0.2 MiB per minute, and those of the attacher and the opener by less than 0.05, as caches fill slowly; in addition to
what its standard error allows for at a false-alarm probability of one in a million. Tables that have a bound and are below it are
left out of the worker's memory: ten minutes do not fill them. The worker's anonymous memory is printed
separately: the rest are pages of the rings, which the kernel has anyway, and of its program. The memory that its allocator uses and
the size of each table are printed from the trace. SONDE selects another program; TRACE is not removed.
"""
import csv
import os
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "lib"))
from bounds import Z  # noqa: E402
from waiting import wait_for  # noqa: E402

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
FAMILIES = "+sched,+syscall,+disk,+net,+lock,+python,+gpu"
LIMITS = {"sonde, without bounded tables": 0.2, "sonde-attacher": 0.05, "sonde-opener": 0.05}  # MiB a minute
STEP = 5  # seconds between two readings


def processes(pid):
    """The process, its children and theirs: {pid: (name, KiB resident, KiB of them anonymous)}"""
    all_, found = {}, {}
    for other in [str(pid), *filter(str.isdigit, os.listdir("/proc"))]:
        try:
            with open(f"/proc/{other}/status") as f:
                status = dict(line.split(":", 1) for line in f.read().splitlines() if ":" in line)
        except OSError:
            continue
        if "VmRSS" in status:
            all_[int(other)] = (status["Name"].strip(), int(status["PPid"]), int(status["VmRSS"].split()[0]),
                                int(status["RssAnon"].split()[0]))
    for other, (name, parent, kib, anonymous) in all_.items():
        if other == pid:
            found[other] = ("sonde", kib, anonymous)
        elif parent == pid or all_.get(parent, ("", 0))[1] == pid:
            found[other] = (name, kib, anonymous)
    return found


def tables(path):
    """{table of the worker: ([(minute, MiB)], [(minute, entries)], its bound)}"""
    found, first = {}, None
    # a trace of an hour is too large for sonde_trace.py
    export = subprocess.Popen([SONDE, "export", path, "--to", "csv", "--event", "meta_table"], stdout=subprocess.PIPE,
                              universal_newlines=True)
    for row in csv.DictReader(export.stdout):
        first = first or int(row["time (ns)"])
        minute = (int(row["time (ns)"]) - first) / 60e9
        of = found.setdefault(row["table"], ([], [], int(row["max"])))
        of[0].append((minute, int(row["bytes (bytes)"]) / (1 << 20)))
        of[1].append((minute, int(row["entries"])))
    export.wait()
    return found


def minutes_of(points):
    """The means of minutes: single readings depend on those before"""
    found = {}
    for minute, value in points:
        found.setdefault(int(minute), []).append(value)
    return [(minute, sum(values) / len(values)) for minute, values in found.items()]


def without_bounded(points, found):
    """The means of minutes, less what the tables with a bound that are still below it hold"""
    held = {}
    for sizes, entries, most in found.values():
        if most and entries[-1][1] < most:
            for minute, mib in minutes_of(sizes):
                held[minute] = held.get(minute, 0) + mib
    return [(minute, mib - held[minute]) for minute, mib in minutes_of(points) if minute in held]


def slope(points):
    """The slope of the least-squares line, and its standard error"""
    n = len(points)
    if n < 3:
        return 0, 0
    x, y = sum(p[0] for p in points) / n, sum(p[1] for p in points) / n
    square = sum((p[0] - x) ** 2 for p in points)
    rise = sum((p[0] - x) * (p[1] - y) for p in points) / square
    return rise, (sum((p[1] - y - rise * (p[0] - x)) ** 2 for p in points) / (n - 2) / square) ** 0.5


def watch(sonde, minutes):
    """{name: [(minute, MiB)]}, which it also prints"""
    figures, began, shown = {}, time.monotonic(), -1
    while sonde.poll() is None and time.monotonic() < began + 60 * minutes:
        time.sleep(STEP)
        minute = (time.monotonic() - began) / 60
        now = {}
        for name, kib, anonymous in processes(sonde.pid).values():
            now[name] = kib / 1024
            if name == "sonde":
                now["sonde, anonymous"] = anonymous / 1024
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


def print_tables(found, warm):
    """Prints the growth of each table after the warm-up."""
    print("\ntable of the worker: MiB at first, at the end, MiB a minute; entries at the end, of at most, more a minute")
    for name, (sizes, entries, most) in sorted(found.items()):
        late = [p for p in sizes if p[0] >= warm]
        if len(late) < 2:
            continue
        rise = slope([p for p in entries if p[0] >= warm])[0]
        print(f"  {name:34} {late[0][1]:7.2f} {late[-1][1]:7.2f} {slope(late)[0]:+8.4f}  {entries[-1][1]:8} {most or '':>8} {rise:+10.1f}")


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory(prefix="sonde-stress-") as folder:
        path = sys.argv[2] if len(sys.argv) > 2 else f"{folder}/trace"
        argv = [SONDE, "record", "-t", FAMILIES, "-F", "99", "--off-cpu", "--cuda=stacks", "-f", "-o", path]
        with open(f"{folder}/log", "w+") as log:
            sonde = subprocess.Popen(argv, stdout=log, stderr=log)
            if not wait_for(lambda: "tracing into" in open(log.name).read()):
                sys.exit("sonde does not begin to record")
            churn = subprocess.Popen([os.path.join(ROOT, "tests", "stress", "churn.py"), folder], stdout=subprocess.PIPE,
                                     universal_newlines=True)
            try:
                figures = watch(sonde, minutes)
            finally:
                end(churn)
                end(sonde)
            log.seek(0)
            print(log.read(), end="")
        found = tables(path)
    print(f"{churn.stdout.read().strip()} rounds of churn, sonde's exit status {sonde.returncode}")
    failed = sonde.returncode not in (0, 3)
    warm = min(15, minutes / 3)
    figures["sonde, without bounded tables"] = without_bounded(figures["sonde"], found)
    figures.update((name, found[name][0]) for name in ("heap in use", "heap") if name in found)
    for name, points in sorted(figures.items()):
        late = [p for p in points if p[0] >= warm]
        if len(late) < 2 or (name not in LIMITS and len(late) < len(points) / 2):  # a helper process that has ended
            continue
        rise, error = slope(minutes_of(late))
        bad = rise > LIMITS.get(name, 1e9) + Z * error
        failed |= bad
        print(f"{name}: {points[0][1]:.1f} MiB at first, {late[0][1]:.1f} after {warm:.0f} min, {late[-1][1]:.1f} at the end: "
              f"{rise:+.3f} +-{Z * error:.3f} MiB a minute{', not flat' if bad else ''}")
    print_tables(found, warm)
    return failed


if __name__ == "__main__":
    sys.exit(main())
