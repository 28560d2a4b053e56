#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
# case: right | PyTorch: a rank that is slow in its backward pass |
"""Rank 1 is named with its line, and whether it computed or slept there; `why` of rank 0 leads to it. Of equal ranks none is named."""
import os
import re
import subprocess
import sys

from case import FOLDER, finish, record, say, script
from tap import ok

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "probes", "torch"))
import torch_env

WORK = """import os, sys, time
import torch
from torch import nn
mode, rank = sys.argv[1], int(os.environ["RANK"])
def delay():
    end = time.monotonic() + 0.04
    if mode == "slept":
        time.sleep(0.04)
    while time.monotonic() < end:
        pass
class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        if rank == 1 and mode != "equal":
            delay()
        return gradient
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(256, 256), nn.Linear(256, 256)
    def forward(self, x):
        return self.last(Slow.apply(torch.relu(self.first(x))))
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method="file://" + os.environ["STORE"], rank=rank, world_size=3)
model = nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
x, y = torch.ones(16, 256), torch.ones(16, 256)
n = 0
while True:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    n += 1
    if n == 20:
        print("trains", flush=True)
"""
python, work = torch_env.python(), script("ranks.py", WORK)
for mode, said in (("computed", r"delay \(ranks.py:(9|10)\)"), ("slept", r"delay \(ranks.py:8\)"), ("equal", None)):
    env = {**os.environ, "STORE": os.path.join(FOLDER, "store-" + mode), "WORLD_SIZE": "3", "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([python, work, mode], env={**env, "RANK": str(i)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True) for i in range(3)]
    try:
        started = [rank.stdout.readline() for rank in ranks]
        path = record("-d", "5", "-t", "+torch", "-p", ",".join(str(rank.pid) for rank in ranks), name=mode)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    card = [" ".join(c.split()) for c in re.split(r"\n(?! )", say("report", path)) if "other ranks wait" in c]
    if not said:
        ok(not card and "No rank makes the others wait" in say("report", path, "ranks"), "no rank of equal ones is named", card)
        continue
    ok(len(card) == 1 and card[0].startswith(f"rank 1 (ranks.py {ranks[1].pid}) makes the 2 other ranks wait ") and re.search(said, card[0]) and
       f"it {mode} " in card[0], f"rank 1, which {mode}, is named", card)
    why = say("report", path, "why", ranks[0].pid).split("\n\n")[0]
    ok(f"ranks.py {ranks[1].pid}" in why and re.search(said, why), f"why of rank 0 leads to rank 1, which {mode}", why)
finish()
