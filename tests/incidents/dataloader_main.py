# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch: a DataLoader without workers, so that each batch is made in the training loop itself."""
import torch
from torch.utils.data import DataLoader, Dataset

from lib import incident

MANIFEST = {
    "title": "DataLoader with a slow `__getitem__`, 0 workers",
    "cause": "CPU",
    "words": [["CPU", "comput", "DataLoader", "starv"]],
    "must": "cause",
    "clock": "loads",
    "packages": ["torch"],
}
loads = incident.Clock("loads")


class Readings(Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, number):
        text = ",".join(str(number * k % 1009) for k in range(256))
        row = [float(field) / 1009 for field in text.split(",")]  # cause
        return torch.tensor(self.smooth(row)), number % 10

    def smooth(self, row):
        for _ in range(20):
            row = [(a + b) / 2 for a, b in zip(row, row[1:] + row[:1])]  # cause
        return row


def train():
    net = torch.nn.Linear(256, 10)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batches = iter(DataLoader(Readings(), batch_size=32))
    while True:
        with loads:
            readings, labels = next(batches)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(readings), labels).backward()
        optimizer.step()


def main():
    torch.set_num_threads(1)
    incident.in_background(train)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
