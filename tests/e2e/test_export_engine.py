#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""Five recordings, exported to Perfetto (plain and .zst) and to Chrome's JSON. Every slice, lane, run, wake-up and item of GPU work
that Perfetto's own engine reads is compared with the trace's events: the demo's programs with all families, a contended GIL
with the scheduler, futexes, doubles of two GPUs, samples with off-CPU time."""
import collections
import os
import subprocess
import sys

import engine_lib
import export_lib
import trace_processor
from export_lib import ROOT, SONDE, TMP, B, Truth
from sonde_cli import Sonde
from tap import done, ok, skip

GIL = ["/usr/bin/python3", os.path.join(ROOT, "tests", "workloads", "gil_contend.py")]
TRAIN = ["/usr/bin/python3", os.path.join(ROOT, "tests", "workloads", "train.py")]
LOCKS = os.path.join(B, "tests", "probes", "lock", "locks")
DOUBLES = os.path.join(B, "tests", "fakes", "cuda", "13")
running = []


def start(command, **env):
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, **env}, text=True)
    running.append(p)
    return p


def record(name, programs, kinds, *options, go=None):
    """Records these programs until the trace has these numbers of events, or until program `go` ends, which waits for a line on stdin."""
    path = os.path.join(TMP, name + ".sonde")
    sonde = Sonde(path, "-p", ",".join(str(p.pid) for p in programs), *options)
    running.append(sonde.process)
    if go:
        go.stdin.write("\n")
        go.stdin.flush()
        go.wait()
    else:
        sonde.wait_trace(lambda trace: not few(trace, kinds))
    status = sonde.end()
    for p in programs:
        p.kill()
        p.wait()
    return path if ok(status == 0, f"{name}: recorded", sonde.messages) else None


def few(trace, kinds):
    """The numbers of events, of kinds of which the trace has less than required"""
    found = {kind: sum(1 for _ in trace.events(kind)) for kind in kinds}
    return {kind: n for kind, n in found.items() if n < kinds[kind]}


def check(path, label, kinds):
    """Compares the exports with the trace, which must have events of these kinds for the comparison to mean anything."""
    if not path:
        return None, None
    truth = Truth(path)
    ok(not few(truth.trace, kinds), f"{label}: enough events of {', '.join(kinds)}", few(truth.trace, kinds))
    return truth, engine_lib.check_all(truth, path, label)


def check_nested(truth, engine, label):
    """A wait on a futex lies within its system call, on its thread's own track."""
    calls = collections.defaultdict(list)
    for e in truth.of("syscall"):
        if truth.title(e).endswith("futex"):
            calls[e["pid"], e["tid"]].append((e["start"], e["time"], e["flags"] & (export_lib.OPEN | export_lib.BLIND)))
    inside, outside = 0, []
    for w in truth.of("lock_wait"):
        # events that began before tracing or were open at its end have no start or end of their own
        if w["flags"] & (export_lib.OPEN | export_lib.BLIND):
            continue
        around = [c for c in calls[w["pid"], w["tid"]] if c[0] < w["time"] and w["start"] < c[1]]
        if any(c[0] < w["start"] and w["time"] < c[1] for c in around):
            inside += 1
        elif any(not c[2] for c in around):
            outside.append((w, around))
    ok(inside and not outside, f"{label}: {inside} futex waits are within their system calls", outside)
    got = engine.query("SELECT p.name, count(*) FROM slice s JOIN slice p ON p.id = s.parent_id WHERE s.name = 'lock_wait' GROUP BY 1")
    nested = sum(int(n) for name, n in got if name.endswith("futex"))
    ok(nested >= inside, f"{label}: engine: {nested} futex waits are nested in their system calls", got)


def check_processes(truth, engine, label):
    """Processes have the names of the reports; losses and costs of the recording are under one track."""
    names = {int(pid): name for pid, name in engine.query("SELECT pid, name FROM process WHERE name IS NOT NULL")}
    titles = truth.titles()
    want = {pid: titles.get(pid) for pid in names}
    ok(names and names == want, f"{label}: engine: processes are named as in the reports", (names, want))
    own = engine.query("SELECT count(*) FROM track t JOIN track p ON p.id = t.parent_id WHERE p.name = 'sonde' AND "
                       "(t.name = 'losses' OR t.name = 'lost records' OR t.name LIKE 'sonde: %')")
    loose = engine.query("SELECT name FROM track WHERE parent_id IS NULL AND (name IN ('losses', 'lost records') OR name LIKE 'sonde: %')")
    ok(int(own[0][0]) >= 4 and not loose, f"{label}: engine: losses and costs are under one track", (own, loose))
    uuid = engine.query("SELECT str_value FROM metadata WHERE name = 'trace_uuid'")
    ok(len(uuid) == 1 and len(uuid[0][0]) == 36, f"{label}: engine: the trace has a UUID", uuid)


def check_gpus(truth, engine, label):
    got = engine.query("SELECT DISTINCT t.name, t.gpu_id, t.unit FROM gpu_counter_track t JOIN counter c ON c.track_id = t.id")
    gpus = {e["device"] for e in truth.of("gpu_kernel")}
    ok({tuple(r) for r in got} >= {("busy", str(g), "%") for g in gpus}, f"{label}: engine: a counter of each of {len(gpus)} GPUs", got)
    got = engine.query("SELECT vendor, length(uuid) FROM gpu")
    ok(len(got) >= len(gpus) and all(r == ["NVIDIA", "32"] for r in got), f"{label}: engine: GPUs are described", got)


def demo():
    if not os.path.exists(os.path.join(DOUBLES, "libcudart.so.13")):
        return skip("demo", "the doubles of CUDA could not be made: scripts/cupti.sh says why")
    programs = [start(GIL), start([*TRAIN, DOUBLES], CUDA_INJECTION64_PATH=os.path.join(B, "libsonde-cupti.so"))]
    kinds = {"lock_wait": 20, "gil_wait": 20, "sched_off": 20, "gpu_kernel": 20, "syscall": 100}
    path = record("demo", programs, kinds, "-t", "+gil,sched,syscall,lock,gpu", "--cuda=stacks")
    truth, engine = check(path, "demo", kinds)
    if engine:
        check_nested(truth, engine, "demo")
        check_processes(truth, engine, "demo")
        check_gpus(truth, engine, "demo")


def contended():
    kinds = {"gil_wait": 20, "gil_hold": 20, "sched_run": 20}
    check(record("gil", [start(GIL)], kinds, "-t", "proc,gil,sched", "--gil=full"), "GIL and scheduler", kinds)


def futexes():
    p = start([LOCKS])
    kinds = {"lock_wait": 20, "syscall": 50}
    truth, engine = check(record("locks", [p], kinds, "-t", "proc,lock,syscall,sched", go=p), "futexes", kinds)
    if engine:
        check_nested(truth, engine, "futexes")


def doubles():
    training = os.path.join(DOUBLES, "fake_training")
    if not os.path.exists(training):
        return skip("two GPUs", "the doubles of CUDA could not be made: scripts/cupti.sh says why")
    path = os.path.join(TMP, "gpus.sonde")
    p = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "proc,cuda,gpu", "--", training, "-d", "2", "-t", "2", "-n", "60",
                        "-p", "2000", "-g"], env=dict(os.environ, FAKE_CUDA="devices=2", FAKE_CUPTI="ppm=50,jitter_ns=500"),
                       capture_output=True, text=True)
    ok(p.returncode == 0, "two GPUs: recorded", p.stderr)
    truth, engine = check(path, "two GPUs", {"gpu_kernel": 100, "cuda_launch": 100})
    if engine:
        check_gpus(truth, engine, "two GPUs")


def samples():
    kinds = {"sample_cpu": 20, "sample_off": 20}
    check(record("samples", [start(GIL)], kinds, "-t", "proc,gil", "-F", "199", "--off-cpu"), "samples", kinds)


def main():
    if os.geteuid():
        print("# needs root")
        sys.exit(77)
    library, why = trace_processor.library()
    if not library:
        skip("the engine's view", why)
        done()
    try:
        for run in demo, contended, futexes, doubles, samples:
            run()
    finally:
        for p in running:
            if p.poll() is None:
                p.kill()
                p.wait()
    done()


main()
