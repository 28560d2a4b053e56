# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A kernel in Triton's language, for torch_work.py."""
import torch
import triton
import triton.language as tl


@triton.jit
def sonde_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def add(x, y):
    out = torch.empty_like(x)
    sonde_add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out
