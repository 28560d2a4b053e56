#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls that end in another way than by a return: an exception through each kind of frame that is probed (operators, boxed operators, backward nodes,
ranges, collectives), and a rank that is killed in an operator. Two threads whose backward nodes have equal sequence numbers. And the code of a
busy loop after the recording.
test: timeout=300 parallel"""
import collections
import json
import os
import re
import signal
import subprocess
import time

import proc_files
from process_text import text_differs, text_stays_different
from recorded import Recorded
from recording import workdir
from sonde_cli import SONDE, Sonde
from sonde_trace import Trace
from tap import done, note, ok, skip_all
from torch_env import Recording, python

OPEN, RETURN_NOT_SEEN, UNWOUND = 1, 2, 16
TIMES = 20

PROGRAM = f"""
import contextlib
import torch
from torch.autograd.profiler import record_function
torch.set_num_threads(1)

class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError

library = torch.library.Library("sonde_test", "DEF")
library.define("fails(Tensor x) -> Tensor")
def fails(x):
    raise ValueError
library.impl("fails", fails, "CPU")

script = torch.jit.CompilationUnit("def run(x, y):\\n    return torch.mm(x, y)\\n").run

a, b = torch.randn(2, 3), torch.randn(4, 5)
leaf = torch.randn(3, requires_grad=True)
print("ready", flush=True)
input()
for _ in range({TIMES}):
    with contextlib.suppress(RuntimeError):
        torch.mm(a, b)
    with contextlib.suppress(Exception):
        torch.ops.sonde_test.fails(a)
    with contextlib.suppress(RuntimeError):
        script(a, b)
    with contextlib.suppress(ValueError):
        Fails.apply(leaf).sum().backward()
    with contextlib.suppress(ValueError), record_function("the range"):
        torch.addmm(torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2))
        raise ValueError
assert torch.mm(a, b.T[:3, :3]).shape == (2, 3)
print("done", flush=True)
input()
"""

THREADS = """
import threading
import torch
torch.set_num_threads(1)
print("ready", flush=True)
input()
turns = threading.Barrier(2)

def train():
    x = torch.randn(4, requires_grad=True)
    for _ in range(10):
        y = (x * x).sum()
        turns.wait()
        y.backward()
        turns.wait()

threads = [threading.Thread(target=train) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("done", flush=True)
input()
"""

# Rank 1 computes until it is killed, while rank 0 waits for it in a collective, which then raises.
RANKS = """
import os, subprocess, sys, tempfile
if len(sys.argv) == 1:
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, "-c", os.environ["PROGRAM"], str(rank), folder], stdin=subprocess.PIPE) for rank in range(2)]
        input()
        for p in ranks:
            p.stdin.write(b"go\\n")
            p.stdin.flush()
        sys.exit(ranks[0].wait())
import torch
import torch.distributed
torch.set_num_threads(1)
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method="file://" + sys.argv[2] + "/store", rank=rank, world_size=2)
a = torch.randn(3000, 3000)
torch.distributed.barrier()
os.write(1, b"rank %d %d\\n" % (rank, os.getpid()))
input()
while rank:
    a @ a
try:
    torch.distributed.all_reduce(a)
except RuntimeError:
    print("raised", flush=True)
assert torch.mm(a, a).shape == a.shape
print("computed", flush=True)
os._exit(0)
"""

COLLECTIVE = f"""
import tempfile
import torch
import torch.distributed
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    torch.distributed.init_process_group("gloo", init_method="file://" + folder + "/store", rank=0, world_size=1)
    group = torch.distributed.group.WORLD.group_name
    x = torch.ones(8)
    print("ready", flush=True)
    input()
    for _ in range({TIMES}):
        torch.ops._c10d_functional.wait_tensor(torch.ops._c10d_functional.all_reduce(x, "sum", group))
    print("done", flush=True)
    input()
"""

BUSY = """
import contextlib
import select
import sys
import time
import torch
torch.set_num_threads(1)
a, b = torch.randn(32, 32), torch.randn(3, 3)
print("ready", flush=True)
longest = steps = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    start = time.monotonic_ns()
    for _ in range(100):
        a.mm(a).add(1).sum()
    with contextlib.suppress(RuntimeError):
        torch.mm(a, b)
    longest = max(longest, time.monotonic_ns() - start)
    steps += 1
print(steps, longest, flush=True)
input()
input()
"""


def check_exceptions():
    r = Recording([python(), "-c", PROGRAM], "--torch=all")
    named = Recorded(r.trace, r.pid).named
    counts = collections.Counter((name, bool(e.get("handle")), e["flags"]) for e, name in named)
    ok(not r.target.returncode and not r.status, "the program and the recording end without an error", r.target.returncode, r.messages)
    for what, key in (("an operator", ("aten::mm", False, UNWOUND)), ("an operator of Python", ("sonde_test::fails", True, UNWOUND)),
                      ("a boxed operator of TorchScript", ("aten::mm", True, UNWOUND)),
                      ("a backward node", ("torch::autograd::PyNode", False, UNWOUND)), ("a range", ("the range", False, 0))):
        ok(counts[key] == TIMES, f"{TIMES} exceptions through {what}", counts[key], counts)
    ok(counts["aten::addmm", False, 0] == TIMES, "calls in a range that an exception leaves return", counts)
    ok({flags for _, _, flags in counts} == {0, UNWOUND}, "each other call has returned", counts)
    lost = [e for e in r.trace.events("meta_loss") if e["family"] == 0x0e and e["pid"] in (0, r.pid)]
    ok(not lost, "no record is lost", lost)


def check_threads():
    r = Recording([python(), "-c", THREADS])
    recorded = Recorded(r.trace, r.pid)
    makers = collections.Counter((e["thread"], e["sequence"]) for e in recorded.ops if e["sequence"] >= 0)
    nodes = [e for e in recorded.nodes if e["sequence"] >= 0]
    shared = collections.Counter(s for _, s in makers)
    ok(sum(n > 1 for n in shared.values()) >= 10, "two threads give their nodes the same sequence numbers", shared)
    joined = sum((e["made_by"], e["sequence"]) in makers for e in nodes)
    # a thread has no number before its first node
    ok(max(makers.values()) == 1 and joined >= len(nodes) - 2, "thread and sequence number join a node with one operator", f"{joined} of {len(nodes)}",
       makers)
    path = r.path + ".json"
    subprocess.run([SONDE, "export", r.path, "--to", "chrome", "-o", path], check=True, capture_output=True)
    with open(path, encoding="utf-8") as f:
        flows = [e for e in json.load(f)["traceEvents"] if e.get("cat") == "fwdbwd"]
    starts = {e["id"]: e["tid"] for e in flows if e["ph"] == "s"}
    ends = {e["id"]: e["tid"] for e in flows if e["ph"] == "f"}
    ok(len(starts) >= len(nodes) - 2 and starts == ends, "each arrow leads to a node of the thread that made it", len(flows), len(nodes))


def check_collective():
    """An operator waits for a collective: it counts that, and has the time of the probes there in its sum."""
    r = Recording([python(), "-c", COLLECTIVE])
    recorded = Recorded(r.trace, r.pid)
    waits = [e for e in r.trace.events("torch_collective") if e["tid"] == r.pid]
    around = [e for e, name in recorded.named if name == "_c10d_functional::wait_tensor"]
    counts = {sum(e["start"] <= w["start"] and w["time"] <= e["time"] for w in waits) for e in around}
    ok(len(around) == TIMES and min(counts) > 0, "operators that wait for a collective", len(around), counts)
    ok(all(e["inner"] == sum(e["start"] < x["start"] and x["time"] <= e["time"] for x in [*waits, *recorded.ops]) and e["probes_ns"] > 0 for e in around),
       "count it, and what its probes took", around[:3])


def check_killed():
    target = subprocess.Popen([python(), "-c", RANKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PROGRAM": RANKS})
    ranks = {}
    while len(ranks) < 2 and (line := target.stdout.readline()):
        if found := re.match(r"rank (\d) (\d+)$", line):
            ranks[int(found[1])] = int(found[2])
    path = os.path.join(workdir(), "killed.sonde")
    sonde = Sonde(path, "-t", "torch", "-p", str(target.pid))
    target.stdin.write("go\n")
    target.stdin.flush()
    sonde.wait_trace(lambda trace: any(e["pid"] == ranks[1] for e in trace.events("torch_op")))
    killed = time.monotonic_ns()
    os.kill(ranks[1], signal.SIGKILL)
    lines = target.stdout.read().split()
    target.wait(timeout=60)
    status = sonde.end()
    ok(lines == ["raised", "computed"] and not target.returncode, "a rank raises in a collective when another one is killed, and continues", lines)
    trace = Trace(path)
    calls = [e for e, name in Recorded(trace, ranks[1]).named if name == "aten::mm"]
    last = max(calls, key=lambda e: e["start"])
    ok(not status and last["flags"] & (OPEN | RETURN_NOT_SEEN), "the operator in which a rank is killed is recorded as open", status, last)
    ok(last["start"] < killed <= last["time"], "up to the time at which it is killed", last, killed)
    ok(all(not e["flags"] for e in calls if e is not last), "the calls before it have returned", calls)
    waits = [e for e in trace.events("torch_collective") if e["tid"] == ranks[0] and e["start"] < killed <= e["time"]]
    ok([e["flags"] for e in waits] == [UNWOUND], "an exception leaves the collective that waited for it", waits)
    ok([e["flags"] for e, name in Recorded(trace, ranks[0]).named if name == "aten::mm"] == [0], "later calls of the other rank have returned")
    report = subprocess.run([SONDE, "report", path, "torch"], capture_output=True, text=True)
    ok(not report.returncode and "aten::mm" in report.stdout, "the report has it", report.stdout, report.stderr)


def check_busy():
    """Attaches to a loop that calls and raises all the time, and detaches from it."""
    target = subprocess.Popen([python(), "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    sonde = Sonde(os.path.join(workdir(), "busy.sonde"), "-t", "torch", "--torch=all", "-p", str(target.pid))
    probed = text_differs(target.pid, "libtorch_cpu.so")
    time.sleep(1)
    attacher = proc_files.child_named(sonde.pid, "sonde-attacher")
    status = sonde.end()
    changed = text_stays_different(target.pid, "libtorch_cpu.so", attacher)
    target.stdin.write("end\n" * 3)
    target.stdin.flush()
    steps, longest = map(int, target.communicate(timeout=60)[0].split())
    note(f"{steps} steps, the longest one {longest / 1e6:.1f} ms")
    ok(probed > 3000 and not changed, "after detaching from a busy loop the library's code in the process is that of its file", probed, changed)
    ok(not status and not target.returncode and steps > 10, "and the loop goes on", status, target.returncode, steps)


if os.geteuid():
    skip_all("tracing needs root")
check_exceptions()
check_threads()
check_collective()
check_killed()
check_busy()
done()
