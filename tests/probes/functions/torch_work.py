# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""torch_work.py STEPS: a training loop. Begins at a line on standard input; after another one it prints cProfile's counts of as many steps."""
import cProfile
import json
import sys

import torch
from torch import nn

BATCH, IN, HIDDEN, OUT = 4, 8, 16, 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(IN, HIDDEN), nn.Linear(HIDDEN, OUT)

    def forward(self, x, scale=None):
        return self.second(torch.nn.functional.relu(self.first(x)) * scale)


def step():
    optimizer.zero_grad()
    loss = criterion(net(torch.rand(BATCH, IN), scale=torch.ones(BATCH, HIDDEN)), torch.arange(BATCH) % OUT)
    loss.backward()
    optimizer.step()


def train():
    for _ in range(steps):
        step()


steps = int(sys.argv[1])
torch.set_num_threads(1)
net, criterion = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
step()
print("ready", flush=True)
sys.stdin.readline()
train()
print("trained", flush=True)
sys.stdin.readline()
profile = cProfile.Profile()
profile.runcall(train)
functions = {"torch.nn.functional:relu": torch.nn.functional.relu, "torch.nn.functional:cross_entropy": torch.nn.functional.cross_entropy,
             "torch.optim:Optimizer.zero_grad": torch.optim.Optimizer.zero_grad, "__main__:Net.forward": Net.forward, "__main__:step": step,
             "backward": torch.autograd.backward, "_": nn.Module.__call__}
counts = {e.code: e.callcount for e in profile.getstats() if not isinstance(e.code, str)}
# a decorator's function has the name
print(json.dumps({name: counts.get(f.__code__, 0) for name, f in functions.items()}), flush=True)
