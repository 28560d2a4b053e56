#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""bench_torch: what `sonde record -t torch` costs a training loop, beside torch.profiler. Environment: PAIRS (5), SECONDS (0.7) of a run.

A process trains four models, with steps of about 2, 5, 25 and 60 ms. In each of PAIRS rounds each tool, in varying order, records a run of each
model, and a run of the same model just before is the other half of the pair. Printed are the median ratios with a 95% bootstrap interval: of the
CPU time of the training thread per step, and of the median wall time of a step (1.10: 10% more). torch.profiler is started and stopped
around each run; what this takes is no part of the ratios, but stated per step. The longest steps are those of the 2 ms loop with `--torch=all`.
Nothing here passes or fails. PyTorch is looked for in build/venv.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import pairs

PAIRS = int(os.environ.get("PAIRS", "5"))
SECONDS = float(os.environ.get("SECONDS", "0.7"))
PYTHON = os.environ.get("BENCH_PYTHON") or os.path.join(pairs.B, "venv/bin/python")

PROGRAM = '''
import contextlib, json, select, sys, time
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
torch.set_num_threads(1)
torch.manual_seed(1)

class Loop:
    def __init__(self, layers, width, batch):
        blocks = [block for _ in range(layers) for block in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())]
        self.model = nn.Sequential(*blocks, nn.Linear(width, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=False)
        self.x, self.y = torch.randn(batch, width), torch.randint(0, 10, (batch,))

    def step(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.x), self.y).backward()
        self.optimizer.step()

    def run(self, seconds):
        """(start of each step and of what follows the last one, CPU ns), all in ns. 0 seconds: until there is a line on stdin"""
        times, cpu = [time.monotonic_ns()], time.thread_time_ns()
        while times[-1] - times[0] < seconds * 1e9 or not seconds and not select.select([sys.stdin], [], [], 0)[0]:
            self.step()
            times.append(time.monotonic_ns())
        return times, time.thread_time_ns() - cpu

OPTIONS = {"profile": {}, "shapes": {"record_shapes": True}, "stacks": {"with_stack": True}}
loops = [Loop(3, 64, 64), Loop(3, 192, 192), Loop(3, 448, 448), Loop(3, 640, 640)]
for loop in loops:
    loop.run(0.5)
print("ready", flush=True)
for line in iter(sys.stdin.readline, ""):
    kind, number, seconds = line.split()
    profiler = profile(activities=[ProfilerActivity.CPU], **OPTIONS[kind]) if kind in OPTIONS else contextlib.nullcontext()
    begin = time.monotonic_ns()
    with profiler:
        times, cpu = loops[int(number)].run(float(seconds))
    around = time.monotonic_ns() - begin - (times[-1] - times[0])
    print(json.dumps({"times": times, "cpu": cpu, "around": around}), flush=True)
'''
LOOPS = 4
SONDE = {"-t torch --inject": ["--inject"], "--torch-budget none": ["--inject", "--torch-budget", "none"],
         "--torch=shim,inner,every": ["--inject", "--torch=shim,inner,every"], "-t torch": [],
         "--torch=all": ["--torch=all"], "--torch=shapes": ["--torch=shapes"], "--torch=stacks": ["--torch=stacks"]}
PROFILER = {"torch.profiler": "profile", "record_shapes": "shapes", "with_stack": "stacks"}


class Program:
    def __init__(self):
        self.p = subprocess.Popen([PYTHON, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  universal_newlines=True)
        if self.p.stdout.readline() != "ready\n":
            print(f"{PYTHON} has no PyTorch")
            sys.exit(77)

    def begin(self, kind, number, seconds=SECONDS):
        self.p.stdin.write(f"{kind} {number} {seconds}\n")
        self.p.stdin.flush()

    def end(self):
        return json.loads(self.p.stdout.readline())

    def run(self, kind, number):
        self.begin(kind, number)
        return self.end()


def steps(run):
    return [b - a for a, b in zip(run["times"], run["times"][1:])]


def of_step(run):
    """(CPU ns, median wall ns) of a step"""
    return run["cpu"] / len(steps(run)), statistics.median(steps(run))


class Table:
    def __init__(self):
        self.ratios = {}  # (tool, loop): [(CPU, wall)]
        self.plain = [[] for _ in range(LOOPS)]
        self.more = {}  # tool: [hits, or ns of start and stop, of a step]

    def add(self, tool, number, plain, run):
        self.plain[number].append(of_step(plain))
        self.ratios.setdefault((tool, number), []).append([a / b for a, b in zip(of_step(run), of_step(plain))])

    def cell(self, tool, number, i):
        values = [r[i] for r in self.ratios[tool, number]]
        return "{:.2f} ({:.2f} to {:.2f})".format(statistics.median(values), *pairs.interval(values))

    def print(self):
        for i, what in enumerate(("CPU time of a step", "median wall time of a step")):
            times = " ".join(f"{statistics.median(p[i] for p in plain) / 1e6:17.2f} ms " for plain in self.plain)
            print(f"{what + ', alone':34}{times}")
            for tool in (*SONDE, *PROFILER):
                print(f"  {tool:31}" + " ".join(f"{self.cell(tool, n, i):>21}" for n in range(LOOPS)))
        for tool in SONDE:
            print(f"{tool}: {statistics.median(self.more[tool]):.0f} hits of probes a step")
        for tool in PROFILER:
            print(f"{tool}: its start and stop took {statistics.median(self.more[tool]) / 1e6:.2f} ms for each recorded step")


def record(program, table, tool, out):
    plain = [program.run("alone", n) for n in range(LOOPS)]
    p = pairs.attach(program.p.pid, ["-t", "torch", *SONDE[tool]], out)
    if "--inject" in SONDE[tool]:
        time.sleep(1.3)  # a library that is in the process already looks for a recording once a second
    runs = [program.run("alone", n) for n in range(LOOPS)]
    pairs.end(p)
    for n in range(LOOPS):
        table.add(tool, n, plain[n], runs[n])
    table.more.setdefault(tool, []).append(pairs.costs(out)[0] / sum(len(steps(run)) for run in runs))


def profiled(program, table, tool):
    for n in range(LOOPS):
        plain, run = program.run("alone", n), program.run(PROFILER[tool], n)
        table.add(tool, n, plain, run)
        table.more.setdefault(tool, []).append(run["around"] / len(steps(run)))


def longest(run, start, end):
    return max((b - a for a, b in zip(run["times"], run["times"][1:]) if b > start and a < end), default=0) / 1e6


def attach_and_detach(program, out):
    """The longest steps in ms: before, while attaching, while recording, while detaching"""
    program.begin("alone", 0, 0)
    time.sleep(2)
    start = time.monotonic_ns()
    p = pairs.attach(program.p.pid, ["-t", "torch", "--torch=all"], out)
    attached = time.monotonic_ns()
    time.sleep(2)
    stop = time.monotonic_ns()
    pairs.end(p)
    end = time.monotonic_ns()
    program.begin("alone", 0, SECONDS)
    run = program.end()
    program.end()
    return longest(run, 0, start), longest(run, start, attached), longest(run, attached, stop), longest(run, stop, end)


def main():
    if os.geteuid():
        print("tracing needs root")
        sys.exit(77)
    program, table = Program(), Table()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, medians of {PAIRS} pairs", flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "out.sonde")
        for _ in range(PAIRS):
            for tool in random.sample([*SONDE, *PROFILER], len(SONDE) + len(PROFILER)):
                if tool in SONDE:
                    record(program, table, tool, out)
                else:
                    profiled(program, table, tool)
        table.print()
        for _ in range(3):
            found = attach_and_detach(program, out)
            print("longest step in 2 s before: {:.1f} ms, while sonde attaches: {:.1f} ms, in 2 s of recording: {:.1f} ms, "
                  "while it detaches: {:.1f} ms".format(*found))
    print(f"load {os.getloadavg()[0]:.1f}")
    program.p.kill()
    program.p.wait()


if __name__ == "__main__":
    main()
