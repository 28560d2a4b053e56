# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch: gradients are clipped by .item() for each row of each parameter, which takes a third of each step."""
import torch
from torch import nn

from lib import incident

MANIFEST = {
    "title": "`.item()` for each row of the gradients",
    "cause": "cpu",
    "words": [["CPU"]],
    "clock": "waits",
    "packages": ["torch"],
}
waits = incident.Clock("waits")


def clip(model):
    for p in model.parameters():
        norm = 0.0
        for row in p.grad.reshape(p.grad.shape[0], -1):
            norm += row.norm().item() ** 2  # cause
        if norm > 100:
            p.grad.mul_(10 / norm ** 0.5)


def train():
    torch.set_num_threads(1)
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(4)])
    optimizer = torch.optim.SGD(model.parameters(), 0.00001)
    x = torch.randn(1024, 256)
    while True:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        with waits:
            clip(model)
        optimizer.step()


def main():
    incident.in_background(train)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
