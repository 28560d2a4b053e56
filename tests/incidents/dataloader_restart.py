# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch: a small data set whose DataLoader starts and ends its two workers anew in each epoch of five batches."""
import torch
from torch.utils.data import DataLoader, TensorDataset

from lib import incident

MANIFEST = {
    "title": "DataLoader that restarts its workers each epoch",
    "cause": "process start",
    "words": [["DataLoader", "pt_data_worker", "worker", "child", "fork", "start"]],
    "clock": "waits",
    "packages": ["torch"],
}
waits = incident.Clock("waits")


def train_epoch(net, optimizer, loader):
    with waits:
        batches = iter(loader)  # cause
    for rows, labels in batches:  # waits
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(rows), labels).backward()
        optimizer.step()
    with waits:
        del batches  # cause


def train():
    net = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    samples = TensorDataset(torch.rand(320, 64), torch.randint(0, 10, (320,)))
    loader = DataLoader(samples, batch_size=64, num_workers=2)
    while True:
        train_epoch(net, optimizer, loader)


def main():
    torch.set_num_threads(1)
    incident.in_background(train)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
