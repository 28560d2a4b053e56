# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A training loop on the CPU that two DataLoader workers feed from files: a line of seconds in, batches a second out.

`dataloader.py spin` has a thread beside it that computes all the time, in Python."""
import os
import sys
import tempfile
import threading
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

FILES, SIDE, BATCH = 512, 96, 16


class Pictures(Dataset):
    """Files of bytes that are read and made into small pictures, as an image loader does."""

    def __init__(self, folder):
        self.paths = [os.path.join(folder, f"{i}.raw") for i in range(FILES)]
        for i, path in enumerate(self.paths):
            np.random.default_rng(i).integers(0, 255, (3, SIDE, SIDE), dtype=np.uint8).tofile(path)

    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        picture = np.fromfile(self.paths[i % FILES], dtype=np.uint8).reshape(3, SIDE, SIDE)
        picture = picture[:, ::-1].astype(np.float32) / 255
        for channel in range(3):
            picture[channel] = np.sort(picture[channel], axis=0)
        return torch.from_numpy(picture.copy()), i % 10


def spin():
    while True:
        sum(range(100))


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        data = iter(DataLoader(Pictures(folder), batch_size=BATCH, num_workers=2, prefetch_factor=2))
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3, stride=2),
                                  torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
        net(next(data)[0])
        step = torch.optim.SGD(net.parameters(), lr=0.01)
        if sys.argv[1:] == ["spin"]:
            threading.Thread(target=spin, daemon=True).start()
        print("ready", flush=True)
        for line in sys.stdin:
            batches, start = 0, time.monotonic()
            while time.monotonic() - start < float(line):
                pictures, labels = next(data)
                step.zero_grad()
                torch.nn.functional.cross_entropy(net(pictures), labels).backward()
                step.step()
                batches += 1
            print(batches / (time.monotonic() - start), flush=True)


if __name__ == "__main__":
    main()
