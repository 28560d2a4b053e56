#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""DistributedDataParallel over gloo. The file of the first argument names the phase in which rank 1 is slow: "data", "forward", "backward",
"optimizer", "collective", or "none". torch.multiprocessing starts two ranks, unless a launcher started this program for each of them."""
import os
import sys

import torch
import torch.distributed as dist
from torch import multiprocessing, nn

LOADED, BATCH = "lorem ipsum dolor " * 12000, 64


class Slow:
    """The phase in which this rank is slow"""
    def __init__(self, rank, path):
        self.rank, self.path, self.phase = rank, path, "none"

    def read(self):
        with open(self.path, encoding="utf-8") as f:
            self.phase = f.read()

    def load_shard(self, phase):
        if self.rank == 1 and self.phase == phase:
            [sum(map(ord, word)) for word in LOADED.split()]


class InBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slow):
        ctx.slow = slow
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.slow.load_shard("backward")
        return gradient, None


class Items(torch.utils.data.Dataset):
    def __init__(self, slow):
        self.slow = slow

    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        if i % BATCH == 0:
            self.slow.load_shard("data")
        return torch.ones(256), torch.ones(256)


class Net(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.slow, self.first, self.last = slow, nn.Linear(256, 256), nn.Linear(256, 256)

    def forward(self, x):
        self.slow.load_shard("forward")
        return self.last(InBackward.apply(torch.relu(self.first(x)), self.slow))


class Sgd(torch.optim.SGD):
    def step(self, closure=None):
        self.slow.load_shard("optimizer")
        return super().step(closure)


def train(rank, size, store, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    slow = Slow(dist.get_rank(), path)
    model = nn.parallel.DistributedDataParallel(Net(slow))
    optimizer = Sgd(model.parameters(), lr=1e-6)
    optimizer.slow = slow
    for n, (x, y) in enumerate(torch.utils.data.DataLoader(Items(slow), batch_size=BATCH)):
        slow.read()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        statistics = torch.ones(16)
        slow.load_shard("collective")
        dist.all_reduce(statistics)
        if n == 5:
            print(f"{slow.rank} {os.getpid()}\n", end="", flush=True)


if __name__ == "__main__":
    number = next((os.environ[name] for name in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK") if name in os.environ), None)
    if "RANK" in os.environ:
        train(-1, -1, "env://", sys.argv[1])
    elif number:
        train(int(number), 2, f"file://{sys.argv[1]}.store", sys.argv[1])
    else:
        multiprocessing.spawn(train, (2, f"file://{sys.argv[1]}.store", sys.argv[1]), nprocs=2)
