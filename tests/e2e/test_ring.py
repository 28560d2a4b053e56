#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rings between the probes and the loader, flooded by threads that outnumber the CPUs while the scheduler's probes run
in their midst. With rings of 8 KiB most records find no room: those that came and those counted as lost must be all
calls, to the last one. With the usual rings, nothing is lost. What comes is whole, and comes once.

Environment: FLOODS (2), rounds of each kind.
"""
import os
import shutil
import subprocess
import sys

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
FLOODS = int(os.environ.get("FLOODS", 2))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sonde_trace import Trace
from tap import done, ok

THREADS = 4
RING_FULL, BLIND = 1, 8
RETURNS = 2  # what the fake library's cudaMemcpy does


def record(library, calls, switch):
    path = os.path.join(TMP, "trace.sonde")
    target = subprocess.Popen([os.path.join(B, "tests/workloads/call_flood"), library, str(THREADS), str(calls)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    sonde = subprocess.Popen([SONDE, "record", "-f", "-t", "cuda,sched,proc", "-o", path, "-p", str(target.pid)],
                             stderr=subprocess.PIPE, text=True, env={**os.environ, "SONDE_TEST": switch})
    said = ""
    while "tracing into" not in said:
        line = sonde.stderr.readline()
        if not line:
            raise SystemExit(f"Bail out! {said}")
        said += line
    target.communicate("go\n")
    said += sonde.communicate()[1]
    return Trace(path, verify=True), target.pid, said


def broken(events, pid, calls):
    """What is wrong with the records; a thread's calls follow one another, by number and in time."""
    last = {}
    for e in sorted(events, key=lambda e: (e["tid"], e["bytes"])):
        if e["pid"] != pid or not 0 < e["bytes"] <= calls or e["ret"] != RETURNS or e["flags"] or e["cpu"] >= os.cpu_count():
            return f"not what was called: {e}"
        before = last.get(e["tid"])
        if before and before["bytes"] == e["bytes"]:
            return f"came twice: {e}"
        if e["start"] > e["time"] or (before and e["start"] < before["time"]):
            return f"times: {before}, {e}"
        last[e["tid"]] = e
    return f"{len(last)} threads" if len(last) != THREADS else ""


def flood(library, calls, switch):
    trace, pid, said = record(library, calls, switch)
    events = list(trace.events("cuda_copy"))
    family = next(e.id >> 8 for e in trace.by_id.values() if e.name == "cuda_copy")
    losses = list(trace.events("meta_loss"))
    lost = sum(e["count"] for e in losses if e["family"] == family and e["reason"] == RING_FULL)
    # what another process maps meanwhile is no matter of this test
    others = [e for e in losses if e["reason"] not in (RING_FULL, BLIND) and e["pid"] in (0, pid)]
    return len(events), lost, broken(events, pid, calls), others, said


def main():
    library = os.path.join(TMP, "libcudart.so.99")
    shutil.copy(os.path.join(B, "tests/fakes/libcudart.so"), library)
    for _ in range(FLOODS):
        # less than a ring holds, even if all comes to one CPU and is not read meanwhile
        calls = 8000
        came, lost, why, others, said = flood(library, calls, "")
        ok(came == THREADS * calls and not lost, "usual rings: every call is there",
           f"{came} and {lost} lost of {THREADS * calls}: {said}")
        ok(not why, "usual rings: each whole and once", why)
        calls = 25000
        came, lost, why, others, said = flood(library, calls, "small-ring")
        print(f"# {lost} of {THREADS * calls} lost")
        ok(lost > 0, "small rings overflow")
        ok(came + lost == THREADS * calls, "small rings: every call is there or counted",
           f"{came} and {lost} lost of {THREADS * calls}: {said}")
        ok(not why, "small rings: each whole and once", why)
        ok(not others, "nothing is lost for other reasons", others)


main()
done()
