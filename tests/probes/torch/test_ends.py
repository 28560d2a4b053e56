#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls that end in another way than by a return: an exception through each kind of frame that is probed (operators, boxed operators, backward nodes,
ranges), and a process that is killed in an operator. And two threads whose backward nodes have equal sequence numbers.
test: timeout=300"""
import collections
import json
import os
import signal
import subprocess
import time

from recorded import Recorded
from sonde_cli import SONDE, Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all
from torch_env import Recording, python
from recording import workdir

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

KILLED = """
import torch
torch.set_num_threads(1)
a = torch.randn(3000, 3000)
print("ready", flush=True)
input()
while True:
    a @ a
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


def check_killed():
    target = subprocess.Popen([python(), "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    target.stdout.readline()
    path = os.path.join(workdir(), "killed.sonde")
    sonde = Sonde(path, "-t", "torch", "-p", str(target.pid))
    target.stdin.write("go\n")
    target.stdin.flush()
    time.sleep(1.5)
    killed = time.monotonic_ns()
    target.send_signal(signal.SIGKILL)
    target.wait(timeout=60)
    status = sonde.end()
    calls = [e for e, name in Recorded(Trace(path), target.pid).named if name == "aten::mm"]
    last = max(calls, key=lambda e: e["start"])
    ok(not status and last["flags"] & (OPEN | RETURN_NOT_SEEN), "the operator in which a process is killed is recorded as open", status, last)
    ok(last["start"] < killed <= last["time"], "up to the time at which it is killed", last, killed)
    ok(all(not e["flags"] for e in calls if e is not last), "the calls before it have returned", calls)
    report = subprocess.run([SONDE, "report", path, "torch"], capture_output=True, text=True)
    ok(not report.returncode and "aten::mm" in report.stdout, "the report has it", report.stdout, report.stderr)


if os.geteuid():
    skip_all("tracing needs root")
check_exceptions()
check_threads()
check_killed()
done()
