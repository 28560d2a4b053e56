#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Findings of a program that converts tensors in each step, or calls a compiled function with ever new sizes; and of the same program while it
does neither. The shares are compared with its own clocks.
test: timeout=300"""
import json

from bounds import share, within
from planted import first_of, say
from tap import done, ok
from torch_env import Recording, judge_modes, python

EDGE = 0.05  # the program's clocks are around the calls, and include what Python does around the operators or the compiler

PROGRAM = """
import time

import torch

torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = torch._dynamo.config.cache_size_limit = 10000
SECONDS = {"recompiles": 4}  # of CPU time, by mode
net = torch.nn.Linear(256, 256)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
rows = torch.rand(512, 256)


def double(x):
    return x.double().float()


@torch.compile(backend="eager", dynamic=False)
def scaled(x):
    return torch.relu(x * 2 + 1).sum()


def train(mode):
    inside = steps = 0
    start, end = time.monotonic_ns(), time.thread_time() + SECONDS.get(mode, 1.5)
    while time.thread_time() < end or steps < 5:
        optimizer.zero_grad()
        net(rows).sum().backward()
        at = time.monotonic_ns()
        if mode == "copies":
            for _ in range(12):
                double(rows)
        elif mode == "recompiles":
            scaled(torch.zeros(steps + 3))
            inside += time.monotonic_ns() - at
            for _ in range(10):  # so that samples lie between two compilations
                net(rows).sum().backward()
            at = time.monotonic_ns()
        elif mode == "compiled":
            scaled(torch.zeros(1))
        inside += time.monotonic_ns() - at
        optimizer.step()
        steps += 1
    print(mode, start, time.monotonic_ns(), inside, steps)


scaled(torch.zeros(1))
scaled(torch.zeros(2))
double(rows)
net(rows).sum().backward()
optimizer.step()
print("ready", flush=True)
input()
for mode in ("plain", "copies", "compiled", "recompiles"):
    train(mode)
print("done", flush=True)
input()
"""


def check(r, mode, start, end, inside, steps):
    began = r.trace.head["clocks"]["monotonic"]
    window = f"{(start - began) / 1e9:.6f}..{(end - began) / 1e9:.6f}"
    found = [f for f in json.loads(say("report", r.path, "--time", window, "--format", "json"))["findings"] if f.get("pid") == r.pid]
    true = inside / (end - start)
    for planted, kind in (("copies", "tensor-copies"), ("recompiles", "compile")):
        f = first_of(found, kind=kind)
        if mode != planted:
            ok(not f, f"{mode}: no finding {kind}", f)
        elif mode == "copies":
            within(f"{mode}: the finding and its share", f.get("share_percent", 0) / 100, true, EDGE, "the clocks are around the calls", f)
        else:
            samples = sum(e["pid"] == r.pid and start <= e["time"] <= end for e in r.trace.events("sample_cpu"))
            share(f"{mode}: the finding and its share", f.get("share_percent", 0) / 100, true, samples, f, systematic=EDGE,
                  why="the clocks are around the calls")
    if mode == "recompiles":
        f = first_of(found, kind="compile")
        # between two compilations the program computes for many samples, so that they are distinguished
        ok(0.9 * steps <= f.get("times", 0) <= steps, "recompiles: how often", (f, steps))
        ok("in train (" in f.get("text", "") and "TORCH_LOGS" in f["text"], "recompiles: the code that calls the function, and what to do", f)


judge_modes(lambda: Recording([python(), "-c", PROGRAM], "-F", "999", families="+torch"), check)
done()
