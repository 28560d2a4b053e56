#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 parallel
"""Two recordings of the scheduler, the GIL, CUDA calls and processes, one of them killed, are exported and compared event by event.
trace_processor, if it can be installed, must read the file without complaint."""
import os
import shutil
import signal
import subprocess
import sys

import export_lib
import perfetto_file
import trace_processor
from export_lib import ROOT, SONDE, TMP, check_all, export
from sonde_trace import Trace
from tap import done, ok, skip
from waiting import wait_for

WORK = os.path.join(ROOT, "tests", "workloads", "export_mix.py")
FAKE = os.path.join(os.environ["B"], "tests", "fakes", "libcudart.so")


def read_up_to(stream, word):
    text = ""
    while word not in text:
        line = stream.readline()
        if not line:
            raise RuntimeError(f"no '{word}': {text}")
        text += line


# The trace must have these events for the comparison to mean anything
KINDS = (("sched_run", 50), ("sched_off", 50), ("gil_wait", 20), ("gil_drop", 1), ("cuda_copy", 20), ("cuda_sync", 10), ("proc_fork", 1), ("proc_rename", 4))


def enough(path):
    trace = Trace(path)
    return all(sum(1 for _ in trace.events(kind)) >= least for kind, least in KINDS)


def record(name, kill=False):
    """Records export_mix.py. With kill, sonde gets SIGKILL once the file has some of it."""
    library, path = os.path.join(TMP, "libcudart.so.99"), os.path.join(TMP, name + ".sonde")
    shutil.copy(FAKE, library)
    work = subprocess.Popen(["/usr/bin/python3", WORK, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tracer = None
    try:
        read_up_to(work.stdout, "ready")
        tracer = subprocess.Popen([SONDE, "record", "-t", "proc,sched,gil,cuda", "-f", "-o", path, "-p", str(work.pid)],
                                  stderr=subprocess.PIPE, text=True)
        read_up_to(tracer.stderr, "tracing into")
        work.stdin.write("go\n")
        work.stdin.flush()
        wait_for(lambda: enough(path), pause=0.3)
        if kill:
            tracer.kill()
        work.communicate("end\n")
        if not kill:
            tracer.send_signal(signal.SIGINT)
        tracer.communicate()
    finally:
        for p in (work, tracer):
            if p and p.poll() is None:
                p.kill()
                p.wait()
    return path


def check_contents(truth):
    for kind, least in KINDS:
        n = len(truth.of(kind))
        ok(n >= least, f"live: the trace has {kind}", n)
    hung = [e for e in truth.of("cuda_sync") if e["flags"] & export_lib.OPEN]
    ok(len(hung) == 1, "live: the trace has a call that never returned", hung)


def check_trace_processor(path):
    """No row of trace_processor's stats may show an error or lost data."""
    query = "SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0"
    library, _ = trace_processor.library()
    if library:
        with open(path, "rb") as file:
            bad = trace_processor.TraceProcessor(library, file.read()).query(query)
        ok(not bad, "trace_processor loads the file without complaint", bad)
        return
    from perfetto.trace_processor import TraceProcessor
    os.environ["HOME"] = os.environ["B"]  # the Python package stores its binary under .local/share
    try:
        tp = TraceProcessor(trace=path)
    except Exception as e:  # pylint: disable=broad-except
        skip("trace_processor loads the file without complaint", f"it can't be installed or run: {str(e).splitlines()[0][:60]}..")
        return
    bad = [(r.name, r.value) for r in tp.query(query)]
    ok(not bad, "trace_processor loads the file without complaint", bad)
    tp.close()


def check_gil_time(truth, path):
    """Stacks of waiters and of holders each account for all of the waiting."""
    want = sum(e["time"] - e["start"] for e in truth.of("gil_wait"))
    for view in ("gil-wait", "gil-blame"):
        p = subprocess.run([SONDE, "export", path, "--to", "folded", "--event", view], capture_output=True, text=True)
        got = sum(int(line.rpartition(" ")[2]) for line in p.stdout.splitlines())
        if truth.of("gil_slice"):
            skip(f"live: {view}: stacks account for all waiting", "the GIL was measured in slices of time, so that waits are weighted")
        else:
            ok(got == want > 0, f"live: {view}: stacks account for all waiting", (got, want))
        ok("export_mix.py)" in p.stdout, f"live: {view}: stacks contain the program's functions", p.stdout[:300] + p.stderr)


def main():
    if os.geteuid():
        print("# needs root")
        sys.exit(77)
    pb, why = perfetto_file.classes()
    if not pb:
        skip("Perfetto files", why)
    path = record("live")
    truth = check_all(path, pb, "live", ("gil_wait", "cuda_copy", "sched_run"))
    check_contents(truth)
    check_gil_time(truth, path)
    if pb and export(path, "perfetto", TMP + "/live.pftrace") is not None:
        check_trace_processor(TMP + "/live.pftrace")
    truth = check_all(record("killed", kill=True), pb, "killed")
    ok(not truth.of("meta_end") and len(truth.of("cuda_copy")) > 0, "killed: the trace is cut off and has calls")
    done()


main()
