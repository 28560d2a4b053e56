# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program for test_flops.py. After a line on stdin it runs each workload, then again under torch.utils.flop_counter and under torch.profiler
(with_flops), and prints the start and end of the first run (CLOCK_MONOTONIC, ns) and both counts by operator, as lines of JSON."""
import collections
import json
import sys
import time
import warnings

import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from torch.utils import flop_counter

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
aten = torch.ops.aten
# flop_counter has formulas for attention on GPUs only; those for CPUs have the same arguments
ATTENTION = {aten._scaled_dot_product_flash_attention_for_cpu: lambda *a, **_: flop_counter.sdpa_flop_count(*a[:3]),
             aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda *a, **_: flop_counter.sdpa_backward_flop_count(*a[:4])}


class Convolutions:
    """One, two and three dimensions; transposed; in groups; with more padding than keeps the size; no gradient of the input or the weight."""
    def __init__(self):
        self.two = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 8, 2, stride=2),
                                 nn.Conv2d(8, 8, 2, padding=1), nn.Conv2d(8, 8, 3, groups=8, stride=2), nn.Flatten(), nn.LazyLinear(10))
        self.one = nn.Sequential(nn.Conv1d(8, 8, 3, padding=2), nn.ConvTranspose1d(8, 8, 3, padding=2), nn.Conv1d(8, 4, 3, dilation=2))
        self.three = nn.Conv3d(2, 4, 2)
        self.frozen = nn.Conv2d(3, 4, 3).requires_grad_(False)

    def __call__(self):
        for _ in range(3):
            self.two(torch.randn(4, 3, 16, 16)).sum().backward()
        self.one(torch.randn(2, 8, 12)).sum().backward()
        self.three(torch.randn(1, 2, 4, 4, 4, requires_grad=True)).sum().backward()
        self.frozen(torch.randn(2, 3, 8, 8, requires_grad=True)).sum().backward()
        with torch.no_grad():
            self.two(torch.randn(1, 3, 8, 8).repeat(1, 1, 2, 2))


class Transformer:
    """Training and evaluation with fused attention, attention from matrix products, and shared heads of keys."""
    def __init__(self):
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)

    def __call__(self):
        self.layer(torch.randn(2, 5, 16)).sum().backward()
        q, k, v = (torch.randn(1, 4, n, 8, requires_grad=True) for n in (6, 7, 7))
        functional.scaled_dot_product_attention(q, k, v).sum().backward()
        with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
            functional.scaled_dot_product_attention(q, k, v).sum().backward()
        functional.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)


class Step:
    """A training step, and the other products of matrices."""
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def __call__(self):
        self.optimizer.zero_grad()
        functional.cross_entropy(self.model(torch.randn(16, 32)), torch.randint(0, 10, (16,))).backward()
        self.optimizer.step()
        torch.baddbmm(torch.randn(2, 3, 5), torch.randn(2, 3, 4), torch.randn(2, 4, 5))
        torch.einsum("bij,bjk->bik", torch.randn(2, 3, 4), torch.randn(2, 4, 5))
        torch.mm(torch.randn(3, 4), torch.randn(4, 5), out=torch.empty(3, 5))
        (torch.randn(3, 4) * 2 + 1) * torch.tensor(2.0)


def run(workload):
    work = workload()
    work()
    start = time.monotonic_ns()
    work()
    end = time.monotonic_ns()
    with flop_counter.FlopCounterMode(display=False, custom_mapping=ATTENTION) as mode:
        work()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_flops=True) as p:
        work()
    elements = collections.Counter()
    for e in p.events():
        elements[e.name] += e.flops or 0
    print(json.dumps({"name": workload.__name__, "start": start, "end": end,
                      "flops": {str(k).replace("aten.", "aten::"): n for k, n in mode.get_flop_counts()["Global"].items()},
                      "elements": {n: elements[n] for n in ("aten::add", "aten::mul") if elements[n]}}), flush=True)


def main():
    print("ready", flush=True)
    sys.stdin.readline()
    for workload in (Convolutions, Transformer, Step):
        run(workload)
    print("done", flush=True)
    sys.stdin.readline()


main()
