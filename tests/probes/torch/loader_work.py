#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A training loop with a DataLoader, for test_dataloader.py. After a line on stdin it trains for SECONDS in each mode: its workers compute
(slow) or read from a disk (disk), it has no workers (own), or none of these (fed). For each it prints the mode, start and end (CLOCK_MONOTONIC,
ns), the time in the loader's range and in next() after the first step, the batches; of the workers the CPU time in __getitem__, the time in it, and that of
the longest call; and for how long the kernel counted them as running and as waiting for a CPU. All times are in ns."""
import os
import tempfile
import time

import torch
from torch.autograd.profiler import record_function
from torch.utils.data import DataLoader, Dataset

SECONDS = 1.2
FILE = 64 << 20
clocks = torch.zeros(2, 3, dtype=torch.int64).share_memory_()  # by worker: CPU time and time in __getitem__, the longest call, ns

in_range = {"began": 0, "ns": 0}  # of the loader's range: when it began (CLOCK_MONOTONIC), and its time so far


def time_ranges():
    """Times what runs within the range by which PyTorch marks the loader. next() takes longer: it also runs the two operators that begin and end
    the range. The range begins in the first of them and ends in the second, so its time lies between the two."""
    enter, leave = record_function.__enter__, record_function.__exit__

    def entered(self):
        result = enter(self)
        if "DataLoader" in self.name:
            in_range["began"] = time.monotonic_ns()
        return result

    def left(self, *error):
        if "DataLoader" in self.name:
            in_range["ns"] += time.monotonic_ns() - in_range["began"]
        return leave(self, *error)

    record_function.__enter__, record_function.__exit__ = entered, left


def decode(number):
    pixels = [0] * 64
    for step in range(30_000):
        pixels[step & 63] += step * number
    return torch.tensor([p % 255 / 255 for p in pixels])


def read(file, number):
    """Reads 40 pages that the page cache does not have."""
    for i in range(40):
        at = (number * 40 + i) * 61 % (FILE >> 12) << 12
        os.posix_fadvise(file, at, 4096, os.POSIX_FADV_DONTNEED)
        os.pread(file, 4096, at)
    return torch.zeros(64)


class Data(Dataset):
    def __init__(self, mode, file):
        self.mode, self.file = mode, file

    def __len__(self):
        return 1 << 20

    def __getitem__(self, number):
        worker = torch.utils.data.get_worker_info()
        cpu, start = time.thread_time_ns(), time.monotonic_ns()
        item = read(self.file, number) if self.mode == "disk" else torch.zeros(64) if self.mode == "fed" else decode(number)
        own = clocks[worker.id if worker else 0]
        own[0] += time.thread_time_ns() - cpu
        took = time.monotonic_ns() - start
        own[1] += took
        own[2] = max(own[2], took)
        return item, number % 10


def counted(workers):
    """The kernel's sums for the workers' main threads: ns running, ns runnable"""
    sums = [0, 0]
    for worker in workers:
        with open(f"/proc/{worker.pid}/task/{worker.pid}/schedstat") as f:
            sums = [a + int(b) for a, b in zip(sums, f.read().split())]
    return sums


def train(mode, file):
    net = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batches = iter(DataLoader(Data(mode, file), batch_size=8, num_workers=0 if mode == "own" else 2))
    for _ in range(2):
        next(batches)  # one of each worker, which needs time to start
    workers = getattr(batches, "_workers", [])
    clocks[:, 2] = 0
    before, ran = clocks.clone(), counted(workers)
    steps = in_next = in_range["ns"] = 0
    start = time.monotonic_ns()
    while time.monotonic_ns() - start < SECONDS * 1e9:
        at = time.monotonic_ns()
        batch = next(batches)
        in_next += time.monotonic_ns() - at
        rows, labels = batch
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(rows), labels).backward()
        if mode == "fed":
            time.sleep(0.02)
        optimizer.step()
        steps += 1
        if steps == 1:
            # a step lasts from one call of the optimizer to the next, so that this one is none
            in_next = in_range["ns"] = 0
    end = time.monotonic_ns()
    ran = [b - a for a, b in zip(ran, counted(workers))]
    print(mode, start, end, in_range["ns"], in_next, steps, *(clocks - before).sum(0).tolist(), *ran)


def main():
    torch.set_num_threads(1)
    time_ranges()
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.write(os.urandom(1 << 20) * (FILE >> 20))
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        torch.nn.functional.cross_entropy(torch.nn.Linear(64, 10)(torch.zeros(2, 64)), torch.zeros(2, dtype=int)).backward()
        print("ready", flush=True)
        input()
        for mode in ("slow", "disk", "own", "fed"):
            train(mode, file.fileno())
        print("done", flush=True)
        input()


main()
