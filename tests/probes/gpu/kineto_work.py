# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kineto_work.py LIBCUDART STEPS: two ranks of made-up training with PyTorch, whose kernels run on the doubles of CUDA. An operator,
double::gemm, launches a kernel on one stream and copies memory; then a kernel of NCCL runs on a second stream, later in rank 1. The ranks are
processes that this program starts. It prints "ready", and they begin after a line on stdin."""
import ctypes
import os
import subprocess
import sys
import time

if "RANK" not in os.environ:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": "2"},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for r in range(2)]
    for p in ranks:
        p.stdout.readline()
    print("ready", flush=True)
    sys.stdin.readline()
    for p in ranks:
        p.stdin.write("go\n")
        p.stdin.flush()
    sys.exit(sum(p.wait() for p in ranks))

import torch

MS = 1000000
RANK = int(os.environ["RANK"])
cuda = ctypes.CDLL(sys.argv[1])


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("ns", ctypes.c_uint64)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


cuda.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
cuda.cudaMemcpyAsync.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
cuda.cudaStreamSynchronize.argtypes = [ctypes.c_void_p]


def new(function, *args):
    handle = ctypes.c_void_p()
    assert not function(ctypes.byref(handle), *args)
    return handle


GEMM, REDUCE = Kernel(b"_Z4gemmILi128EEvPfS0_S0_i", 4 * MS), Kernel(b"ncclKernel_AllReduce_RING_LL_Sum_float", 3 * MS)
cuda.cudaSetDevice(RANK)
streams = [new(cuda.cudaStreamCreate) for _ in range(2)]
memory, host = new(cuda.cudaMalloc, ctypes.c_size_t(32 << 20)), ctypes.create_string_buffer(1)


def launch(kernel, stream):
    assert not cuda.cudaLaunchKernel(ctypes.byref(kernel), Dim3(264, 1, 1), Dim3(256, 1, 1), None, 0, stream)


def gemm(x):
    launch(GEMM, streams[0])
    assert not cuda.cudaMemcpyAsync(memory, host, 32 << 20, 1, streams[0])
    return x


library = torch.library.Library("double", "DEF")
library.define("gemm(Tensor x) -> Tensor")
library.impl("gemm", gemm, "CPU")
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters())
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    with torch.profiler.record_function("pass"):
        with torch.profiler.record_function("compute"):
            model(torch.ops.double.gemm(torch.ones(2, 16))).sum().backward()
        time.sleep(0.002 * RANK)
        launch(REDUCE, streams[1])
    for s in streams:
        assert not cuda.cudaStreamSynchronize(s)
    optimizer.step()
