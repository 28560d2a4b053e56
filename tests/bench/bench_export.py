#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_export: a trace of EVENTS (1000000) API calls in every format: seconds, events a second, peak memory, bytes an
event; then one of as many samples of FRAMES (50000) frames, in the formats of stacks; then one of as many launches of
GPU work. Writes build/bench-export.json."""
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUILD = os.path.join(ROOT, "build")
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "sonde"))
EVENTS = int(os.environ.get("EVENTS", "1000000"))
FRAMES = int(os.environ.get("FRAMES", "50000"))
STACK_FORMATS = (("folded", "folded"), ("flame", "html"), ("speedscope", "speedscope.json"), ("pprof", "pb.gz"),
                 ("perfetto", "pftrace.zst"), ("html", "page.html"))
FORMATS = (("text", "txt"), ("perfetto", "pftrace"), ("perfetto", "pftrace.zst"), ("chrome", "json"), ("csv", "csv"),
           ("sqlite", "db"), ("html", "page.html"))
GPU_FORMATS = (("perfetto", "pftrace"), ("perfetto", "pftrace.zst"), ("chrome", "json"), ("sqlite", "db"), ("html", "page.html"))


def events_of(trace, event):
    info = json.loads(subprocess.run([SONDE, "info", trace, "--format", "json"], capture_output=True,
                                     check=True).stdout)
    return next(k["events"] for k in find(info, event))


def find(tree, event):
    """Objects with the number of events of a kind, at any depth of the JSON"""
    if isinstance(tree, dict):
        if event in tree.values() and "events" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            yield from find(item, event)


def measure(trace, fmt, ending, tmp):
    out = os.path.join(tmp, "out." + ending)
    command = [SONDE, "export", trace, "--to", fmt, "-o", out] + (["--event", "copy"] if fmt == "csv" else [])
    began = time.monotonic()
    child = subprocess.Popen(command)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - began
    if status:
        sys.exit(f"{' '.join(command)}: status {status}")
    n = events_of(trace, "copy") if fmt == "csv" else EVENTS
    size = os.path.getsize(out)
    os.unlink(out)
    return {"format": fmt, "file": ending, "events": n, "seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime,
            "events_per_second": n / seconds, "peak_kib": usage.ru_maxrss, "bytes_per_event": size / n}


def show(r):
    print(f"{r['file']:14}{r['events']:9}{r['seconds']:7.2f}{r['cpu']:7.2f}{r['events_per_second']:11.0f}"
          f"{r['peak_kib'] / 1024:6.0f}{r['bytes_per_event']:13.1f}", flush=True)
    return r


def main():
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as tmp:
        trace = os.path.join(tmp, "bench.sonde")
        subprocess.run([os.path.join(BUILD, "tests", "bench", "trace_write"), str(EVENTS), trace], check=True,
                       stdout=subprocess.DEVNULL)
        print(f"{EVENTS} events, {os.path.getsize(trace) / EVENTS:.1f} bytes each in the trace")
        print(f"{'file':14}{'events':>9}{'s':>7}{'CPU s':>7}{'events/s':>11}{'MiB':>6}{'bytes/event':>13}")
        results = [show(measure(trace, fmt, ending, tmp)) for fmt, ending in FORMATS]
        subprocess.run([os.path.join(BUILD, "tests", "bench", "stacks_write"), str(EVENTS), str(FRAMES), trace], check=True)
        print(f"{EVENTS} samples, {os.path.getsize(trace) / EVENTS:.1f} bytes each with {FRAMES} frames")
        results += [show(measure(trace, fmt, ending, tmp)) for fmt, ending in STACK_FORMATS]
        subprocess.run([os.path.join(BUILD, "tests", "golden", "make_gpu_trace"), trace, str(EVENTS)], check=True)
        print(f"{EVENTS} launches and their work")
        results += [show(measure(trace, fmt, ending, tmp)) for fmt, ending in GPU_FORMATS]
    with open(os.path.join(BUILD, "bench-export.json"), "w") as f:
        json.dump(results, f, indent=1)


main()
