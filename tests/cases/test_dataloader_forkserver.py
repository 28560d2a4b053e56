#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | PyTorch: workers that a fork server starts |
"""The worker is the training process's, not the fork server's; `why` of the training process ends at slow_item (dlf.py:10), which computes."""
import os
import re
import subprocess
import sys

from case import finish, record, say, script, start
from sonde_cli import tables
from tap import ok

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "probes", "torch"))
from torch_env import python

WORK = """import torch, time
from torch.utils.data import Dataset, DataLoader
class Items(Dataset):
    def __len__(self): return 100000
    def __getitem__(self, i): return slow_item(i)
def slow_item(i):
    end, x = time.thread_time() + .02, i
    while time.thread_time() < end:
        for _ in range(100):
            x = (x * 31 + 7) % 1000003
    return torch.tensor(x)
def train(batches):
    for n, batch in enumerate(batches):
        batch.sum()
        if n == 2:
            print("trains", flush=True)
if __name__ == "__main__":
    torch.set_num_threads(1)
    train(DataLoader(Items(), batch_size=8, num_workers=1, multiprocessing_context="forkserver", persistent_workers=True))
"""
work = start(python(), script("dlf.py", WORK), until="trains", stderr=subprocess.DEVNULL)
path = record("-d", "4", "-t", "+torch", "-p", work.pid)
loaders = tables("report", path, "dataloader")["loaders"]
ok([(row["pid"], row["workers"]) for row in loaders] == [(work.pid, 1)], "one training process, with its worker", loaders)
last = [line for line in say("report", path, "why", work.pid).split("\n\n")[0].splitlines() if "Mostly" in line][-1:]
ok(last and re.search(r"(ran on|waited for) a CPU .*in slow_item \(dlf.py:", last[0]), "the chain ends at the worker's computation", last)
finish()
