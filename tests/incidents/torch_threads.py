# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PyTorch: three processes that serve a model, each with four threads for its operators, on a machine with fewer CPUs."""
import multiprocessing
import time

import torch

from lib import incident

MANIFEST = {
    "title": "PyTorch, four operator threads in each of three processes",
    "cause": "CPU",
    "words": [["CPU"], ["thread"]],
    "must": "cause",
    "clock": "lost",
    "packages": ["torch"],
}
lost = incident.Clock("lost")


def infer(weights, batch):
    return torch.relu(batch @ weights)  # cause


def serve_model(seed):
    torch.manual_seed(seed)
    torch.set_num_threads(4)
    weights, batch = torch.rand(512, 512), torch.rand(256, 512)
    while True:
        start, cpu = incident.now(), time.thread_time_ns()
        for _ in range(20):
            infer(weights, batch)
        lost.add_lost(start, cpu)


def main():
    for seed in range(3):
        multiprocessing.Process(target=serve_model, args=(seed,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
