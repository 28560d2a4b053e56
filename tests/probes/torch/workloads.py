#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program that uses PyTorch in many ways, for test_counts.py. After a line on stdin it runs each workload under torch.profiler and prints
what the profiler and the program itself counted, as lines of JSON: the start and end (CLOCK_MONOTONIC, ns) and the counts by name.

    workloads.py [--shapes] [--stacks] [--flows] [NAME..]

With --shapes also the sizes and strides of the tensors that each operator was called with, with --stacks its Python stack, both in order. With --flows the
number of flows from operators to backward nodes in the profiler's export."""
import collections
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
import warnings

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function

warnings.filterwarnings("ignore")
SHAPES, STACKS, FLOWS = ("--" + option in sys.argv for option in ("shapes", "stacks", "flows"))
torch.set_num_threads(1)
torch.manual_seed(1)


class Training:
    """AdamW steps of a small network; hooks on its first layer."""
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.x, self.y = torch.randn(16, 32), torch.randint(0, 10, (16,))
        self.model[0].register_forward_hook(lambda module, args, out: out.mul(1.0))
        self.model[0].weight.register_hook(lambda grad: grad * 1.0)

    def __call__(self):
        for _ in range(20):
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(self.x), self.y)
            loss.backward()
            self.optimizer.step()


class Convolution:
    """A convolutional network with batch norm and pooling, trained."""
    def __init__(self):
        self.model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                   nn.Linear(8 * 7 * 7, 4))
        self.x = torch.randn(4, 3, 16, 16)

    def __call__(self):
        for _ in range(5):
            self.model(self.x).sum().backward()


class Attention:
    """A transformer layer, evaluated and trained. And a tensor with more dimensions than a tensor has room for, in another order than in memory."""
    def __init__(self):
        self.deep = torch.randn(2, 1, 3, 2, 1, 2).permute(5, 3, 4, 2, 1, 0)
        self.model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.x = torch.randn(2, 5, 16)

    def __call__(self):
        for _ in range(3):
            self.model.train()(self.x).sum().backward()
            with torch.no_grad():
                self.model.eval()(self.x)
            self.deep.exp()


class Script:
    """TorchScript, whose interpreter calls operators boxed."""
    def __init__(self):
        def body(x: torch.Tensor, n: int):
            for _ in range(n):
                x = torch.relu(x) + x.sum()
            return x
        self.body, self.x = torch.jit.script(body), torch.randn(4)
        for _ in range(5):
            self.body(self.x, 3)

    def __call__(self):
        for _ in range(10):
            self.body(self.x, 3)


class Boxed:
    """torch.ops and an operator that is defined in Python."""
    def __init__(self):
        def twice(x: torch.Tensor) -> torch.Tensor:
            return x + x
        if hasattr(torch.library, "custom_op"):
            twice = torch.library.custom_op("sonde_test::twice", twice, mutates_args=())
        else:  # before PyTorch 2.4
            self.library = torch.library.Library("sonde_test", "DEF")
            self.library.define("twice(Tensor x) -> Tensor")
            self.library.impl("twice", twice, "CPU")
            twice = torch.ops.sonde_test.twice
        self.twice, self.x = twice, torch.randn(8)
        self()

    def __call__(self):
        for _ in range(10):
            torch.ops.aten.mul.Tensor(self.x, self.x)
            self.twice(self.x)


class Vmap:
    """functorch: vmap and grad."""
    def __init__(self):
        self.x = torch.randn(6, 4)
        self.work = torch.func.vmap(torch.func.grad(lambda x: (x * x).sin().sum()))
        self()

    def __call__(self):
        for _ in range(5):
            self.work(self.x)


class Raises:
    """Operators that are left by an exception, also through others."""
    def __init__(self):
        self.a, self.b = torch.randn(2, 3), torch.randn(4, 5)

    def __call__(self):
        for _ in range(200):
            with contextlib.suppress(RuntimeError):
                torch.mm(self.a, self.b)
            with contextlib.suppress(RuntimeError):
                torch.einsum("ij,jk->ik", self.a, self.b)


class Threads:
    """Inference in four threads at once, which the profiler does not follow."""
    def __init__(self):
        self.counts = {"aten::linear": 80, "aten::addmm": 80, "aten::relu": 80}
        self.model, self.x = nn.Linear(16, 16), torch.randn(4, 16)

    def infer(self):
        with torch.no_grad():
            for _ in range(20):
                self.model(self.x).relu()

    def __call__(self):
        threads = [threading.Thread(target=self.infer) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


class Loader:
    """A DataLoader in the process, with ranges of the program's own around its batches."""
    def __init__(self):
        data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.arange(64))
        self.loader = torch.utils.data.DataLoader(data, batch_size=16)

    def __call__(self):
        for x, y in self.loader:
            with record_function("the program's batch"):
                (x.sum() + y.sum()).item()


class Function:
    """A backward function in Python, and double backward."""
    def __init__(self):
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx, grad):
                x, = ctx.saved_tensors
                return 3 * x * x * grad
        self.cube, self.x = Cube, torch.randn(5, requires_grad=True)

    def __call__(self):
        for _ in range(5):
            grad, = torch.autograd.grad(self.cube.apply(self.x).sum(), self.x, create_graph=True)
            grad.sum().backward()


class Lines:
    """Each operator is called from another line."""
    def __init__(self):
        self.x = torch.randn(5)

    def __call__(self):
        for _ in range(20):
            x = self.x.sin()
            y = x.cos()
            z = [v.exp() for v in (x, y)]
            self.last = z[0].tan()


WORKLOADS = (Training, Convolution, Attention, Script, Boxed, Vmap, Raises, Threads, Loader, Function, Lines)


def start_of(event):
    """Of an event of Kineto; 2.3 has its start in microseconds only, where calls within one have its order."""
    return event.start_ns() if hasattr(event, "start_ns") else event.start_us()


def exported(p):
    """The events of the profiler's export, in order of time; none without --flows and --shapes"""
    if not FLOWS and not SHAPES:
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        p.export_chrome_trace(path)
        with open(path, encoding="utf-8") as f:
            return sorted((e for e in json.load(f)["traceEvents"] if e.get("cat") in ("cpu_op", "fwdbwd")), key=lambda e: e["ts"])


def run(workload):
    work = workload()
    work()
    # the profiler shows the stacks of its events only with `verbose`
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True) if STACKS else None
    with profile(activities=[ProfilerActivity.CPU], record_shapes=SHAPES, with_stack=STACKS, experimental_config=verbose) as p:
        start = time.monotonic_ns()
        work()
        end = time.monotonic_ns()
    # p.events() leaves out a call whose only child has the same name
    events = p.profiler.kineto_results.events()
    sequences = [e.sequence_nr() for e in events if e.scope() == 1 and e.sequence_nr() >= 0]
    counts = collections.Counter(e.name() for e in events)
    rows = exported(p)
    print(json.dumps({"name": workload.__name__, "start": start, "end": end, "sequences": len(sequences),
                      "counts": getattr(work, "counts", counts),
                      "flows": sum(e["ph"] == "f" for e in rows),
                      "strides": [(e["name"], e["args"].get("Input Strides", [])) for e in rows if e["ph"] == "X"],
                      "stacks": [(e.name(), e.stack()) for e in sorted(events, key=start_of)] if STACKS else [],
                      "shapes": [(e.name(), e.shapes()) for e in sorted(events, key=start_of)] if SHAPES else []}),
          flush=True)


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    for workload in WORKLOADS:
        if all(arg.startswith("--") for arg in sys.argv[1:]) or workload.__name__ in sys.argv[1:]:
            run(workload)
    print("done", flush=True)
    sys.stdin.readline()


main()
