# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `ebpf`: sonde itself: `sonde record -t +gpu` of the same program, its trace against what the program did."""
import collections
import os
import signal
import sqlite3
import subprocess

from facts import with_cuda
from judge import Joined, check_durations, check_graphs, check_memory, check_waits
from lib import GROUPS, Asked, Skip, end_group, read_text
from shim_records import KINDS, STARTED, STOPPED
from shimmed import Reported, read_truth
from waiting import wait_for

from build import SHIM, SONDE, WORK, need_shim

# Enums are text in SQL: those of bpf/core/shim.h that are compared, as numbers
NUMBERS = {name: n for names in (
    ("GPU_COPY_UNKNOWN", "GPU_COPY_HTOD", "GPU_COPY_DTOH", "GPU_COPY_HTOA", "GPU_COPY_ATOH", "GPU_COPY_ATOA", "GPU_COPY_ATOD",
     "GPU_COPY_DTOA", "GPU_COPY_DTOD", "GPU_COPY_HTOH", "GPU_COPY_PTOP"),
    ("GPU_SYNC_UNKNOWN", "GPU_SYNC_EVENT", "GPU_SYNC_STREAM_WAIT_EVENT", "GPU_SYNC_STREAM", "GPU_SYNC_CONTEXT"),
    ("GPU_MEMORY_INVALID", "GPU_MEMORY_ALLOCATE", "GPU_MEMORY_RELEASE"),
    ("GPU_MEMORY_UNKNOWN", "GPU_MEMORY_PAGEABLE", "GPU_MEMORY_PINNED", "GPU_MEMORY_DEVICE", "GPU_MEMORY_ARRAY", "GPU_MEMORY_MANAGED"),
    ("", "GPU_SHIM_STARTED", "GPU_SHIM_STOPPED", "GPU_SHIM_REFUSED", "GPU_SHIM_WAITING", "GPU_SHIM_LEFT",
     "GPU_SHIM_IMPAIRED"),
) for n, name in enumerate(names)}
REPORTS = ("cuda", "gpu", "memory", "summary", "timeline", "losses", "processes")


class Traced(Reported):
    """A trace, in the terms of what the shim reports in its own process."""

    def __init__(self, run, trace):
        path, got = run.file("trace.db"), collections.defaultdict(list)
        done = run.command([SONDE, "export", trace, "--to", "sqlite", "-o", path], 40)
        self.tables, self.losses = {}, []
        if done.status == 0:
            db = sqlite3.connect(path)
            db.row_factory = sqlite3.Row
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                self.tables[name.removeprefix("sonde_")] = db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for kind in KINDS[1:]:
                if f"gpu_{kind}" in self.tables:
                    for row in db.execute(f'SELECT * FROM "sonde_gpu_{kind}"'):
                        got[kind].append({k: NUMBERS.get(row[k], row[k]) for k in row.keys()})
            self.losses = [dict(row) for row in db.execute("SELECT family, reason, count FROM sonde_losses")]
            db.close()
        super().__init__(got)
        # a kernel's name is a text in this table already
        self.names.update({e["name"]: e["name"] for e in got["kernel"] if isinstance(e["name"], str)})
        self.export = done


def can(run):
    m = run.result["machine"]
    if not m.get("sonde_runs"):
        raise Skip("there is no sonde that runs here: see part build")
    if os.geteuid():
        raise Skip("tracing needs root")
    if m.get("gvisor"):
        raise Skip("gVisor has no eBPF; the other parts do without")
    if not m["ebpf"]["btf"]:
        raise Skip("there is no /sys/kernel/btf/vmlinux")
    done = run.command([SONDE, "doctor"], 25)
    run.say("sonde doctor", done.out[-1400:] or done.why())


def environment(run, truth):
    return with_cuda(run, WORK_TRUTH=truth)


def recorded(run, label, families):
    truth, trace = run.file("truth"), run.file("run.sonde")
    done = run.command([SONDE, "record", "-f", "-o", trace, "-t", families, "--", WORK, "run"], 45, env=environment(run, truth))
    facts, ops = read_truth(truth)
    if not run.ok(done.status == 0 and ops, f"{label}: recorded, and the program ends well", done.why(), seconds=round(done.seconds, 1)):
        return None
    run.say(f"{label}: sonde says", done.err[-800:])
    reported = Traced(run, trace)
    run.ok(reported.export.status == 0, f"{label}: the trace can be read", reported.export.why())
    run.ok(reported.states == [STARTED, STOPPED], f"{label}: the shim starts and stops", reported.states, reported.texts)
    gpu_lost = [e for e in reported.losses if str(e["family"]) == "gpu"]
    run.ok(not reported.dropped and not gpu_lost, f"{label}: nothing of the GPU lost", reported.dropped, gpu_lost)
    run.say(f"{label}: losses", reported.losses)
    j = Joined(ops, reported)
    j.check(run, label)
    check_durations(run, label, j, run.doubles)
    check_graphs(run, label, j, False)
    check_waits(run, label, j)
    check_memory(run, label, ops, reported)
    run.say(f"{label}: events", reported.tables)
    return trace


def reports(run, trace):
    done = run.command([SONDE, "list", "reports"], 10)
    names = [line.split()[0] for line in done.out.splitlines() if line.split() and line.startswith(REPORTS)]
    bad, first = [], {}
    for name in names:
        done = run.command([SONDE, "report", trace, name, "-n", "5"], 20)
        first[name] = done.out[:700]
        if done.status:
            bad.append((name, done.why()))
    run.ok(names and not bad, "reports of the trace", bad, reports=len(names))
    for name, text in first.items():
        run.say(f"report {name}", text)


class Recording:
    """`sonde record -p` of a process that runs, once its probes are in."""

    def __init__(self, run, pid, trace):
        self.path = run.file("record.log")
        with open(self.path, "wb") as log:
            self.child = subprocess.Popen([SONDE, "record", "-f", "-o", trace, "-t", "gpu", "-p", str(pid)], stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log, start_new_session=True)
        GROUPS.add(self.child.pid)
        wait_for(lambda: "tracing into" in read_text(self.path) or self.child.poll() is not None)

    def stop(self):
        self.child.send_signal(signal.SIGINT)
        try:
            status = self.child.wait(20)
        except subprocess.TimeoutExpired:
            status = -1
        end_group(self.child)
        return status


def attached(run, label, env, prepare=None):
    """To a program that has used CUDA for a while."""
    steps, kernels, trace = 50, 20, run.file("late.sonde")
    w = Asked([WORK, "loop"], env, run.file("log"))
    try:
        if w.line(30) is None:
            run.ok(False, f"{label}: the program comes up", read_text(w.path))
            return
        w.number("go 10 10", 20)
        if prepare and not prepare(w.child.pid):
            return
        r = Recording(run, w.child.pid, trace)
        # the shim looks once a second, and CUPTI takes its time
        wait_for(lambda: STARTED in Traced(run, trace).states, pause=0.5)
        w.number(f"go {steps} {kernels}", 30)
        wait_for(lambda: len(Traced(run, trace).got["kernel"]) >= steps * kernels, pause=0.5)
        status = r.stop()
        w.number("go 10 10", 20)
    finally:
        w.end()
    reported = Traced(run, trace)
    run.ok(status == 0 and reported.states == [STARTED, STOPPED] and len(reported.got["kernel"]) == steps * kernels,
           f"{label}: each kernel, and none of before or after", status, reported.states, reported.texts, read_text(r.path)[-600:],
           reported=len(reported.got["kernel"]), launched=steps * kernels)


def injected(run):
    if "inject" not in run.command([SONDE, "--help"], 10).out:
        run.skip("sonde inject into a running process", "this sonde has no such command")
        return

    def inject(pid):
        done = run.command([SONDE, "inject", str(pid)], 25)
        return run.ok(done.status == 0, "sonde inject: the shim is in", done.why(), seconds=round(done.seconds, 2))
    attached(run, "sonde inject", with_cuda(run), inject)


def run(run):
    need_shim()
    if not run.doubles and not run.result["machine"]["driver_cuda"]:
        raise Skip("there is no libcuda.so.1")
    can(run)
    trace = recorded(run, "sonde record -t +gpu", "+gpu")
    if trace:
        reports(run, trace)
    if "cudadrv" in run.command([SONDE, "list", "families"], 10).out and run.left() > 15:
        recorded(run, "sonde record -t +gpu,cudadrv", "+gpu,cudadrv")
    run.need(15, "attached late")
    attached(run, "attached late", with_cuda(run, CUDA_INJECTION64_PATH=SHIM))
    run.need(15, "sonde inject")
    injected(run)
