#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_reports: every report and every export of two builds on the same traces: CPU time, wall time and peak memory.

OLD=PROGRAM is the sonde to compare with $SONDE; by default both are $SONDE, which shows the noise of the ratios.
TRACES="FILE.." are the traces; without it those of tests/golden, and EVENTS (300000) calls, samples and launches that the other
benchmarks make. The two builds run in turn, RUNS (5) times; ratios are medians of new / old of neighbouring runs. WHAT=PATTERN
chooses reports and exports by name. A line that ends in "slower" or "bigger" has a ratio above 1.05, and a difference of more
than 5 ms or 1 MiB."""
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.environ.get("ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
B = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(B, "sonde"))
OLD = os.environ.get("OLD", SONDE)
EVENTS = os.environ.get("EVENTS", "300000")
RUNS = int(os.environ.get("RUNS", "5"))
WHAT = re.compile(os.environ.get("WHAT", ""))
LIMIT = 1.05


def say(sonde, *args):
    return json.loads(subprocess.run([sonde, *args, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout)


def names(what):
    """The reports or formats that both builds have"""
    old, new = ({row["name"] for row in say(sonde, "list", what)["tables"][what]} for sonde in (OLD, SONDE))
    return sorted(old & new)


def made(tmp):
    """[traces of the tests and of the other benchmarks]"""
    for events in sorted(glob.glob(os.path.join(ROOT, "tests/golden/*.events"))):
        with open(events) as f:
            schema = re.search(r"^# schema: (.*)", f.read(), re.M)
        schema = os.path.join(ROOT, "tests/golden", schema[1]) if schema else re.sub("events$", "schema.json", events)
        if not os.path.exists(schema):
            schema = os.path.join(ROOT, "tests/golden/schema.json")
        out = os.path.join(tmp, os.path.basename(events)[:-len(".events")] + ".sonde")
        subprocess.run([os.path.join(B, "tests/golden/make_trace"), schema, events, out], check=True)
        yield out
    for name, *args in (("calls", "bench/trace_write", EVENTS, None), ("samples", "bench/stacks_write", EVENTS, "5000", None),
                        ("launches", "golden/make_gpu_trace", None, EVENTS)):
        out = os.path.join(tmp, name + ".sonde")
        subprocess.run([os.path.join(B, "tests", args[0]), *(a or out for a in args[1:])], check=True, stdout=subprocess.DEVNULL)
        yield out


def most_frequent(trace):
    kinds = say(SONDE, "info", trace)["tables"].get("events", [])
    return max(kinds, key=lambda k: k["events"])["name"] if kinds else None


def run(sonde, args, out):
    """CPU seconds, wall seconds, MiB"""
    began = time.monotonic()
    with open(out, "wb") as f:
        child = subprocess.Popen([sonde, *args], stdout=f, stderr=subprocess.DEVNULL, cwd=os.path.dirname(out))
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 2):
        sys.exit(f"{sonde} {' '.join(args)}: exit status {child.returncode}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024


def compare(trace, name, args, tmp):
    old, new = [], []
    for i in range(RUNS):
        for sonde, into in ((OLD, old), (SONDE, new))[::-1 if i % 2 else 1]:
            into.append(run(sonde, args, os.path.join(tmp, "out")))
    middle = [[statistics.median(column) for column in zip(*runs)] for runs in (old, new)]
    ratio = [statistics.median(n[i] / max(o[i], 1e-3) for o, n in zip(old, new)) for i in range(3)]
    (old_cpu, old_wall, old_mib), (new_cpu, new_wall, new_mib) = middle
    worse = ["slower"] * (ratio[0] > LIMIT and new_cpu - old_cpu > 0.005) + ["bigger"] * (ratio[2] > LIMIT and new_mib - old_mib > 1)
    print(f"{os.path.basename(trace)[:-len('.sonde')]:14}{name:20}{old_cpu:8.3f}{new_cpu:8.3f}{ratio[0]:6.2f}"
          f"{old_wall:8.3f}{new_wall:8.3f}{ratio[1]:6.2f}{old_mib:7.0f}{new_mib:7.0f}{ratio[2]:6.2f}  {', '.join(worse)}".rstrip(), flush=True)
    return ratio


def main():
    reports, formats = names("reports"), names("formats")
    ratios = []
    print(f"{'trace':14}{'what':20}{'CPU s':>8}{'new':>8}{'':6}{'wall s':>8}{'new':>8}{'':6}{'MiB':>7}{'new':>7}")
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as tmp:
        os.chmod(tmp, 0o755)
        for trace in os.environ.get("TRACES", "").split() or made(tmp):
            trace = os.path.abspath(trace)
            todo = [("report " + r, ["report", trace, r]) for r in reports]
            kind = most_frequent(trace)
            for fmt in formats:
                if fmt != "csv" or kind:
                    todo.append(("export " + fmt, ["export", trace, "--to", fmt, "-f", "-o", os.path.join(tmp, "exported"),
                                                   *(["--event", kind] if fmt == "csv" else [])]))
            ratios += [compare(trace, name, args, tmp) for name, args in todo if WHAT.search(name)]
    print("median of all ratios: CPU {:.3f}, wall {:.3f}, memory {:.3f}".format(*(statistics.median(r) for r in zip(*ratios))))


main()
