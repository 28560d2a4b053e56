# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch: two DataLoader workers decode so slowly that the training loop waits for them most of the time."""
import torch
from torch.utils.data import DataLoader, Dataset

from lib import incident

MANIFEST = {
    "title": "DataLoader with a slow `__getitem__`, 2 workers",
    "cause": "starved",
    "words": [["DataLoader", "pt_data_worker", "starv", "worker process", "child"]],
    "must": "cause",
    "clock": "waits",
    "packages": ["torch"],
}
waits = incident.Clock("waits")


class Pictures(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, number):
        pixels = [0] * 64
        for step in range(60_000):
            pixels[step & 63] += step * number  # cause
        return torch.tensor([p % 255 / 255 for p in pixels]), number % 10


def train():
    net = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batches = iter(DataLoader(Pictures(), batch_size=8, num_workers=2))
    while True:
        with waits:
            pictures, labels = next(batches)  # waits
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(pictures), labels).backward()
        optimizer.step()


def main():
    torch.set_num_threads(1)
    incident.in_background(train)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
