# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch: a training loop that computes all the time, as it should; its DataLoader worker is always ahead."""
import torch
from torch.utils.data import DataLoader, TensorDataset

from lib import incident

MANIFEST = {
    "title": "nothing: a training loop that computes",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "condition", "quota", "throttl", "starv", "straggl", "slept", "child", "DataLoader"],
    "packages": ["torch"],
}


def train():
    net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    samples = TensorDataset(torch.rand(100_000, 512), torch.randint(0, 10, (100_000,)))
    for rows, labels in DataLoader(samples, batch_size=512, num_workers=1, prefetch_factor=4):
        for _ in range(8):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(rows), labels).backward()
            optimizer.step()


def main():
    torch.set_num_threads(1)
    incident.in_background(train)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
