# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two ranks of torch.distributed over gloo; rank 1 tokenizes its batch in Python."""
import os
import sys

import torch
import torch.distributed as dist

from lib import incident

MANIFEST = {
    "title": "one of two ranks tokenizes in Python",
    "cause": "ranks",
    "words": [["rank"]],
    "must": "cause",
    "clock": "waits",
    "packages": ["torch", "numpy"],
}
waits = incident.Clock("waits")


def tokenize(text):
    return [sum(ord(c) for c in word) % 1000 for word in text.split()]  # cause (tokenize)


def reduce(gradient, number):
    start = incident.now()
    dist.all_reduce(gradient)  # waits
    if number == 0:
        waits.add_since(start)


def rank(number, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(number), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    weights = torch.randn(128, 128)
    while True:
        if number == 1:
            tokenize("lorem ipsum dolor sit amet " * 4000)
        gradient = weights @ weights
        reduce(gradient, number)


def main():
    if len(sys.argv) > 1:
        rank(int(sys.argv[1]), sys.argv[2])
    port = incident.free_port()
    for number in range(2):
        incident.start(sys.executable, __file__, number, port)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
