# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program of bench_torch.py: torch_loops.py NAME [RANK STORE]

It warms up and prints "ready". Each line on stdin is a command:
    alone N               does its work N times, after 1 + N/10 times that are not measured
    profiler N            the same under torch.profiler
    profiler-full N       with record_shapes and with_stack
    size KIND             does its work once under this profiler: how much it recorded
    observed 1, observed 0  waits until PyTorch calls an observer of operators, as the library of sonde is, or none
    until                 does its work until the next line, which it leaves to be read
The answer is a line of JSON."""
import ctypes
import gc
import json
import os
import select
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../real"))
import torch_programs  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

OPTIONS = {"profiler": {}, "profiler-full": {"record_shapes": True, "with_stack": True}}
OBSERVED_WITHIN = 10  # seconds


class Resnet(torch_programs.Torchvision):
    """ResNet-18 in two threads of PyTorch"""
    def __init__(self):
        torch.set_num_threads(2)
        super().__init__()


class Transformer:
    """Training of a transformer, with a batch for which a step takes so many ms of CPU time"""
    steps = 1
    SIZES = {2: (1, 32), 5: (2, 64), 20: (3, 128), 50: (4, 192)}  # layers, width
    SEQUENCE, CLASSES = 16, 8

    def __init__(self, ms):
        layers, self.width = self.SIZES[ms]
        layer = nn.TransformerEncoderLayer(self.width, 4, 4 * self.width, batch_first=True)
        self.model = nn.Sequential(nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.Linear(self.width, self.CLASSES))
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        few, many = 1, 1
        base = self.ms_with(few)
        while (longer := self.ms_with(many)) < ms:
            few, base, many = many, longer, 2 * many
        self.set_batch(round(few + (many - few) * (ms - base) / (longer - base)) if many > few else 1)

    def set_batch(self, n):
        self.x, self.y = torch.randn(n, self.SEQUENCE, self.width), torch.randint(0, self.CLASSES, (n * self.SEQUENCE,))

    def ms_with(self, batch):
        self.set_batch(batch)
        self()
        times = []
        for _ in range(15):
            start = time.process_time_ns()
            self()
            times.append(time.process_time_ns() - start)
        return statistics.median(times) / 1e6

    def __call__(self):
        self.optimizer.zero_grad()
        nn.functional.cross_entropy(self.model(self.x).flatten(0, 1), self.y).backward()
        self.optimizer.step()


PROGRAMS = {"gpt2": torch_programs.Transformers, "resnet18": Resnet, "lightning": torch_programs.Lightning, "ddp": torch_programs.Ddp,
            "compile": torch_programs.Compile}


class Commands:
    def __init__(self, work):
        self.work = work
        library = ctypes.CDLL(os.path.join(torch.__path__[0], "lib/libtorch_cpu.so"), os.RTLD_NOLOAD | os.RTLD_NOW)
        self.has_observer = library._ZN2at18hasGlobalCallbacksEv
        self.has_observer.restype = ctypes.c_bool

    def run(self, n):
        for _ in range(n):
            self.work()

    def measured(self, n):
        gc.collect()
        before = 1 + n // 10
        self.run(before)
        wall, cpu = time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID)
        self.run(n)
        cpu, wall = time.clock_gettime_ns(time.CLOCK_PROCESS_CPUTIME_ID) - cpu, time.monotonic_ns() - wall
        return {"cpu": cpu, "wall": wall, "steps": n * self.work.steps, "all_steps": (n + before) * self.work.steps}

    def profiled(self, kind, n):
        with profile(activities=[ProfilerActivity.CPU], **OPTIONS[kind]):
            return self.measured(n)

    def size(self, kind):
        file = f"{os.getpid()}.json"
        with profile(activities=[ProfilerActivity.CPU], **OPTIONS[kind]) as p:
            self.work()
        p.export_chrome_trace(file)
        size = os.path.getsize(file)
        os.unlink(file)
        return {"bytes": size, "events": len(p.profiler.kineto_results.events()), "steps": self.work.steps}

    def observed(self, expected):
        end = time.monotonic() + OBSERVED_WITHIN
        while self.has_observer() != bool(expected) and time.monotonic() < end:
            time.sleep(0.005)
        return self.has_observer() == bool(expected)

    def until(self):
        times = [time.monotonic_ns()]
        while not select.select([sys.stdin], [], [], 0)[0]:
            self.work()
            times.append(time.monotonic_ns())
        return times

    def do(self, command, *arguments):
        if command == "alone":
            return self.measured(int(*arguments))
        if command == "observed":
            return self.observed(int(*arguments))
        if command == "size":
            return self.size(*arguments)
        return self.until() if command == "until" else self.profiled(command, int(*arguments))


def main():
    name, *ranks = sys.argv[1:]
    if ranks:
        torch.distributed.init_process_group("gloo", init_method=f"file://{ranks[1]}", rank=int(ranks[0]), world_size=torch_programs.RANKS)
    if name in PROGRAMS and PROGRAMS[name].packages:
        torch_programs.import_torchvision()
    work = Transformer(int(name.removeprefix("loop-").removesuffix("ms"))) if name.startswith("loop-") else PROGRAMS[name]()
    commands = Commands(work)
    commands.run(3)
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(commands.do(*line.split())), flush=True)


if __name__ == "__main__":
    main()
