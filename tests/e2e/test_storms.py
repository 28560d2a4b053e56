#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""Any process may cause events as fast as it can (tests/workloads/storm): each event is recorded or counted as lost, the recording ends
normally, and its tables stay small."""
import os
import re
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from sonde_trace import Trace
from tap import done, ok, skip

STORM = os.path.join(B, "tests", "workloads", "storm")
FAKE = os.path.join(B, "tests", "fakes", "libcudart.so")
CUDA, PROC = 3, 1  # families
# the event of which each kind causes one per iteration; None: no event beyond those of the file
OWN = {"exec": 1}  # events of the program itself, which is executed
KINDS = {"rename": "proc_rename", "thread": "proc_fork", "exec": "proc_exec", "file": None, "write": None}


def storm(kind, event):
    path = os.path.join(TMP, f"{kind}.sonde")
    done = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "proc,cuda", "--", STORM, kind, "1", TMP, FAKE],
                          env=dict(os.environ, SONDE_TEST="small-ring"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=100)
    times = int(done.stdout or 0)
    trace = Trace(path)
    whole = done.returncode in (0, 3) and len(list(trace.events("meta_end"))) == 1
    ok(times and whole, f"{kind}: the recording ends normally", (done.returncode, done.stderr[-2000:]))
    lost = sum(e["count"] for e in trace.events("meta_loss") if e["family"] == PROC)
    found = len(list(trace.events(event))) if event else 0
    if event:
        ok(times <= found + lost and found <= times + OWN.get(kind, 0), f"{kind}: each iteration is recorded or counted as lost",
           f"{times} times, {found} recorded, {lost} lost")
    lines = done.stderr.count("\n")
    ok(lines < 120, f"{kind}: the number of messages is limited", f"{lines}: {done.stderr[-2000:]}")
    texts = {e["string"]: e["text"] for e in trace.events("meta_string")}
    sizes = {}
    for e in trace.events("meta_table"):
        sizes[texts[e["table"]]] = e["bytes"]
    memory = sum(n for table, n in sizes.items() if not re.match("heap", table))
    ok(memory < 64 << 20, f"{kind}: the tables take less than 64 MiB", sizes)


def flip(kind, seconds):
    """A program that changes its name so that --comm selects and deselects it. When selected, its threads, program and mappings are read,
    by which time `blink` nearly always has another name."""
    path = os.path.join(TMP, f"{kind}.sonde")
    done = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "proc,cuda", "--comm", "storm-1", "--", STORM, kind, seconds],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=100)
    trace = Trace(path)
    pids = {e["pid"] for e in trace.events("proc_rename")}
    ok(done.returncode == 0 and int(done.stdout or 0) > 10 and len(pids) == 1, f"{kind}: a program is selected repeatedly",
       (done.returncode, done.stdout, done.stderr, pids))
    times = sorted(e["time"] for e in trace.events("proc_task") if e["pid"] in pids)
    images = [e for e in trace.events("proc_image") if e["pid"] in pids]
    texts = {e["string"]: e["text"] for e in trace.events("meta_string")}
    maps = {os.path.basename(texts[e["path"]]) for e in trace.events("proc_map") if e["pid"] in pids}
    ok(times and images and "storm" in maps, f"{kind}: it is introduced with its thread, program and mappings", (times, images, maps))
    # the first introduction is that of the start if the program had the selected name
    all_names = sorted(e["time"] for e in trace.events("proc_rename"))
    most = 2 + (all_names[-1] - all_names[0]) / 1e9 if all_names else 0
    ok(len(times) <= most, f"{kind}: it is introduced once a second at most",
       f"{len(times)} times: {[(t - times[0]) / 1e9 for t in times[:20]]}")


def main():
    if not os.access(STORM, os.X_OK) or not os.path.exists(FAKE):
        skip("storms", "the program or the library of the test is not built")
        done()
    for kind, event in KINDS.items():
        storm(kind, event)
    flip("flip", "3")
    flip("blink", "2")


main()
done()
