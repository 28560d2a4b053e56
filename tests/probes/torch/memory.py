# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program for test_memory.py. After a line on stdin it runs each workload under torch.profiler (profile_memory) and prints its start and end
(CLOCK_MONOTONIC, ns), each name's own CPU memory, and bytes and address of each [memory] event of the profiler's trace, as lines of
JSON. Then two training loops: of one each step leaves a tensor behind."""
import collections
import inspect
import json
import os
import sys
import tempfile
import time
import warnings

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(1)
STEPS, LEFT = 12, 5000  # float32 numbers
# PyTorch 2.3 and 2.6 round the start and end of an operator to find its memory: some bytes count for the operator
# around or after it
EXACT = "kineto_event.end_ns()" in inspect.getsource(torch.autograd.profiler)
kept = []


class Convolution:
    """A convolutional network with batch norm, trained; its activations are freed by the backward pass."""
    def __init__(self):
        self.model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 7 * 7, 4))
        self.x = torch.randn(4, 3, 16, 16)

    def __call__(self):
        for _ in range(3):
            self.model(self.x).sum().backward()


class Attention:
    """A transformer layer, and results that live on."""
    def __init__(self):
        self.model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.x = torch.randn(2, 5, 16)

    def __call__(self):
        self.kept = [self.model(self.x) for _ in range(4)]
        self.kept[0].sum().backward()


class Step:
    """A training step, whose optimizer allocates its state, and other allocations of the program."""
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def __call__(self):
        for _ in range(2):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(torch.randn(16, 32)), torch.randint(0, 10, (16,))).backward()
            self.optimizer.step()
        self.x = torch.cat([torch.empty(100), torch.zeros(10).clone()])
        self.x.resize_(5000)


def instants(p):
    """[bytes, address] of the events [memory] that the profiler exports, in order of time"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "profile.json")
        p.export_chrome_trace(path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    found = sorted((e["ts"], e["args"]["Ev Idx"], e["args"]["Bytes"], e["args"]["Addr"]) for e in events if e.get("name") == "[memory]")
    return [event[2:] for event in found]


def run(workload):
    work = workload()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        start = time.monotonic_ns()
        work()
        end = time.monotonic_ns()
    memory = collections.Counter()
    for e in p.key_averages():
        memory[e.key] += e.self_cpu_memory_total if hasattr(e, "self_cpu_memory_total") else e.self_cpu_memory_usage
    print(json.dumps({"name": workload.__name__, "start": start, "end": end, "memory": memory, "exact": EXACT, "instants": instants(p)}), flush=True)


def loop(name, leaks):
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    start = time.monotonic_ns()
    for _ in range(STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(16, 32)), torch.randint(0, 10, (16,))).backward()
        optimizer.step()
        if leaks:
            kept.append(torch.zeros(LEFT).clone())
    print(json.dumps({"name": name, "start": start, "end": time.monotonic_ns(), "left": 4 * LEFT if leaks else 0}), flush=True)


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    for workload in (Convolution, Attention, Step):
        run(workload)
    loop("healthy", False)
    loop("leak", True)
    print("done", flush=True)
    sys.stdin.readline()


main()
