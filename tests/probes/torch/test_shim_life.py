#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The library in a process that runs PyTorch: the budget records blocks of whole steps and counts the others, in programs with and without an optimizer;
forked children are recorded; two recordings at once, one after the other, and one that is killed; a recording of a process that has the library
already begins at once; nothing of it stays in PyTorch.
test: timeout=300"""
import bisect
import collections
import os
import signal
import subprocess

import proc_files
from recording import workdir
from sonde_cli import SONDE, Sonde, tables
from sonde_trace import Trace
from tap import done, ok
from torch_env import python
from waiting import wait_for

OPS = 300  # operators of a step
BLOCK_NS = 40_000_000  # torch_budget.c

PROGRAM = f"""
import ctypes, os, sys, time
import torch
torch.set_num_threads(1)
library = ctypes.CDLL(os.path.join(torch.__path__[0], "lib/libtorch_cpu.so"), os.RTLD_NOLOAD | os.RTLD_NOW)
callbacks = library._ZN2at18hasGlobalCallbacksEv
callbacks.restype = ctypes.c_bool
x, matrix = torch.ones(4), torch.ones(4, 4)
optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1)

def work():
    for _ in range({OPS}):
        torch.exp(x)

print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    word, seconds = line.split()
    end = time.monotonic() + float(seconds)
    if word == "fork":
        pid = os.fork()
        if not pid:
            for _ in range(1000):
                torch.cos(x)
            time.sleep(0.5)
            torch.cos(x)
            time.sleep(0.5)  # without this _exit() would lose the last call
            print("child", callbacks(), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        continue
    if word == "einsum":
        for _ in range(100):
            torch.einsum("ij,jk->ik", matrix, matrix)
    steps, begins = 0, [time.monotonic_ns()]
    while time.monotonic() < end:
        work()
        if word == "train":
            optimizer.step()
        steps += 1
        if word == "log":
            begins.append(time.monotonic_ns())
    print(word, steps, callbacks(), time.monotonic_ns(), *begins[1:], flush=True)
"""


class Program:
    def __init__(self):
        self.p = subprocess.Popen([python(), "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.p.pid
        self.p.stdout.readline()

    def send(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def read(self):
        return self.p.stdout.readline().split()

    def do(self, line):
        self.send(line)
        return self.read()


def record(program, name, *options):
    return Sonde(os.path.join(workdir(), name + ".sonde"), "-t", "torch", "--inject", "-p", str(program.pid), *options)


def finish(sonde):
    status = sonde.end()
    ok(status == 0, f"{os.path.basename(sonde.path)}: the recording ends in order", sonde.messages)
    return Trace(sonde.path)


def names(trace, pid, since=0):
    """Calls of operators by name that began after a time (CLOCK_MONOTONIC, ns)"""
    known = {e["handle"]: e["name"] for e in trace.events("torch_operator") if e["pid"] == pid}
    return collections.Counter(known.get(e["handle"], "?") for e in trace.events("torch_op") if e["pid"] == pid and e["start"] > since)


def started(sonde):
    ok(sonde.wait_trace(lambda t: any(e["state"] == 1 for e in t.events("torch_shim"))), "the library has begun to record")


def clean(program, what):
    answer = program.do("infer 0.05")
    ok(answer[2] == "False", f"{what}: PyTorch has no observer any more", answer)


def rests_of(trace, pid):
    """The rests, without the records of their begins"""
    return [e for e in trace.events("torch_rest") if e["pid"] == pid and e["start"] < e["time"]]


def check_training(program):
    s = record(program, "train")
    started(s)
    program.do("train 0.3")
    _, steps, _, _ = program.do("train 3")
    trace = finish(s)
    recorded = sorted((e for e in trace.events("torch_step") if e["pid"] == program.pid), key=lambda e: e["start"])
    rests = sorted(rests_of(trace, program.pid), key=lambda e: e["start"])
    all_steps = len(recorded) + sum(e["steps"] for e in rests)
    ok(recorded and rests and all_steps >= int(steps) > len(recorded), "training: some steps were recorded, and the others counted",
       len(recorded), all_steps, steps)
    ops = [e["start"] for e in trace.events("torch_op") if e["pid"] == program.pid]
    per_step = collections.Counter(sum(r["start"] <= o < r["time"] for o in ops) for r in recorded)
    # with what step() itself calls
    ok(len(per_step) == 1 and min(per_step) >= OPS, "training: each recorded step has all operators", per_step)
    blocks = [after["start"] - before["time"] for before, after in zip(rests, rests[1:])]
    ok(blocks and min(blocks) >= BLOCK_NS, "training: what is recorded at a time is as long as a block", min(blocks, default=0))
    # the recording ends in the last rest
    span = rests[-2]["time"] - recorded[0]["start"]
    share = sum(e["cost"] for e in rests[:-1]) / span
    ok(share < 0.016, "training: the estimated cost is within the budget", f"{share:.4f}")
    numbers = [e["step"] for e in recorded]
    ok(numbers == sorted(set(numbers)) and numbers[-1] < all_steps + 1, "training: steps are numbered", numbers[:5], numbers[-1], all_steps)
    loops = tables("report", s.path, "steps")["loops"]
    ok(any(abs(row["steps"] - len(recorded)) <= 1 for row in loops), "training: `report steps` has them", loops)
    clean(program, "training")


def check_inference(program):
    s = record(program, "infer")
    started(s)
    program.do("infer 4")
    trace = finish(s)
    rests = rests_of(trace, program.pid)
    ok(len(rests) > 1 and not any(e["steps"] for e in rests), "inference: recorded some of the time", len(rests))
    ops = sorted(e["start"] for e in trace.events("torch_op") if e["pid"] == program.pid)
    inside = max(sum(r["start"] < o < r["time"] for o in ops) for r in rests)
    ok(ops and inside <= 1, "inference: within a rest at most the call that was beginning", len(ops), inside)


def check_all(program):
    s = record(program, "all", "--torch-budget", "none")
    started(s)
    _, first, _, first_end = program.do("infer 1")
    other = record(program, "other", "--torch-budget", "none")
    ok(other.wait_trace(lambda t: any(True for _ in t.events("torch_shim"))), "a second recording begins")
    _, second, _, _ = program.do("infer 1")
    trace = finish(other)
    # the program may not have handed over its last calls when the recording began
    found = names(trace, program.pid, int(first_end))
    ok(found["aten::exp"] == int(second) * OPS, "of two recordings the later has each call since it began", found, int(second) * OPS)
    _, third, observed, _ = program.do("infer 1")
    ok(observed == "True", "the other one goes on")
    trace = finish(s)
    found, expected = names(trace, program.pid), (int(first) + int(second) + int(third)) * OPS
    ok(found["aten::exp"] == expected, "the earlier one has each call", found, expected)
    clean(program, "two recordings")


def check_hits(program):
    """Calls within a call are counted in it, whether they are recorded or not: durations are corrected by that."""
    within = []
    for name, options in (("outer", []), ("inner", ["--torch=inner"])):
        s = record(program, name, "--torch-budget", "none", *options)
        started(s)
        program.do("einsum 0")
        trace = finish(s)
        handles = {e["handle"] for e in trace.events("torch_operator") if e["name"] == "aten::einsum"}
        within.append([e["inner"] + e["hits"] for e in trace.events("torch_op") if e["handle"] in handles])
        costs = list(trace.events("torch_cost"))
        ok(costs and all(e["call"] > e["hit"] > e["own"] for e in costs), f"{name} operators: what a call costs was measured", costs)
    ok(len(within[0]) == 100 and set(within[0]) == set(within[1]) != {0}, "calls within a call are counted, recorded or not",
       [set(w) for w in within])


def is_dormant(pid):
    """Does the library's thread wait for a tracer at the first word of its file?"""
    calls = [(proc_files.read(f"/proc/{pid}/task/{tid}/syscall") or "").split() for tid in proc_files.threads(pid)]
    return any(call[0] == "202" and call[3] == "0x464c457f" for call in calls if len(call) > 4)


def check_again(program):
    """The traced time is one second, and the program logs when each of its steps ends."""
    ok(wait_for(lambda: is_dormant(program.pid), 20, 0.05), "the library waits for a tracer")
    program.send("log 4")
    s = record(program, "again", "--torch-budget", "none", "-d", "1")
    status = s.end(None)
    ends = [int(ns) for ns in program.read()[4:]]
    trace = Trace(s.path)
    cost, stop = next(trace.events("meta_cost")), next(trace.events("meta_end"))["stop"]
    live = cost["time"] - cost["wall"]
    steps = [(a, b) for a, b in zip(ends, ends[1:]) if live <= a and b <= stop]
    calls = sorted(e["start"] for e in trace.events("torch_op") if e["pid"] == program.pid)
    wrong = [(a, b) for a, b in steps if bisect.bisect(calls, b) - bisect.bisect(calls, a) != OPS]
    ok(status == 0 and steps and not wrong, f"recorded again, at once: all calls of the {len(steps)} steps in the traced time",
       len(wrong), live, wrong[:3])
    gaps = [e for e in trace.events("meta_loss") if e["reason_name"] == "LOSS_ATTACH_GAP" and e["last"] > live]
    ok(not gaps, "recorded again: no time is counted as a gap", gaps)


def check_fork(program):
    s = record(program, "fork", "--torch-budget", "none")
    started(s)
    program.send("fork 0")
    answer = program.read()
    trace = finish(s)
    children = {e["pid"] for e in trace.events("torch_op")} - {program.pid}
    found = [names(trace, pid)["aten::cos"] for pid in children]
    ok(answer == ["child", "True"] and found == [1001], "a forked child's calls are recorded", answer, found)
    program.send("fork 0")
    ok(program.read() == ["child", "False"], "a child that is forked later has no observer")


def check_kill(program):
    s = record(program, "kill", "--torch-budget", "none")
    started(s)
    os.kill(s.pid, signal.SIGKILL)
    s.process.wait()
    ok(wait_for(lambda: program.do("infer 0.05")[2] == "False", 20, 0.2), "the recording was killed: PyTorch has no observer any more")


def check_end_in_rest():
    """A process that is killed while only its ranges are recorded: these are in no report, as those of other rests."""
    program = Program()
    s = record(program, "end-in-rest")
    started(s)
    program.send("train 60")
    ok(s.wait_trace(lambda t: len(rests_of(t, program.pid)) > 2), "it rests")
    program.p.kill()
    program.p.wait()
    trace = finish(s)
    recorded = sum(e["pid"] == program.pid for e in trace.events("torch_step"))
    found = [row for row in tables("report", s.path, "torch")["operators"] if row["name"].startswith("Optimizer.step#")]
    # and one each time that recording begins, within the step before the first recorded one, and the last
    ok(sum(row["calls"] for row in found) <= recorded + len(rests_of(trace, program.pid)) + 2, "calls of step() are those of recorded steps", found, recorded)


def check_command():
    """Children of the command have the library from their start, and end while it records."""
    command = f"'{python()}' -c \"$0\"; true"
    run = subprocess.run([SONDE, "record", "-q", "-t", "torch", "--inject", "--torch-budget", "none", "-f", "-o", os.path.join(workdir(), "command.sonde"),
                          "--", "sh", "-c", command, PROGRAM], input="train 0.5\ntrain 0.5\n", capture_output=True, text=True)
    *_, (_, steps, is_observed, _) = (line.split() for line in run.stdout.splitlines())
    found = list(Trace(os.path.join(workdir(), "command.sonde")).events("torch_step"))
    ok(run.returncode == 0 and is_observed == "True" and not run.stderr, "a command: its child is recorded, and prints nothing else",
       run.stdout, run.stderr)
    ok(len(found) >= int(steps), "a command: the steps of its child are recorded", len(found), run.stdout)


def check_options(program):
    """What would have no effect is refused."""
    for options in (["--torch-budget", "2%"], ["--torch=inner"], ["--inject", "--torch=shapes", "--torch-budget=none"],
                    ["--inject", "--torch-budget", "5%"], ["--torch=shim"], ["--inject", "--torch=shim,all"]):
        run = subprocess.run([SONDE, "record", "-t", "torch", *options, "-p", str(program.pid)], capture_output=True, text=True)
        ok(run.returncode == 2 and "--torch" in run.stderr, f"refused: {' '.join(options)}", run.returncode, run.stderr)


def main():
    if os.geteuid():
        raise SystemExit("1..0 # SKIP tracing needs root")
    program = Program()
    check_options(program)
    check_command()
    check_training(program)
    check_inference(program)
    check_all(program)
    check_fork(program)
    check_kill(program)
    check_end_in_rest()
    check_again(program)
    check_hits(program)
    program.p.stdin.close()
    ok(program.p.wait(timeout=60) == 0, "the program ends as usual")
    done()


main()
