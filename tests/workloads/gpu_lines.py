#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gpu_lines.py LIBCUDART STEPS: launches kernels of the doubles (tests/fakes/cuda) from functions with the kernels' names:
`softmax` launches _Z7softmaxPfi and so on."""
import ctypes
import sys
import threading
import time

lib = ctypes.CDLL(sys.argv[1])
# a library is probed some milliseconds after it is mapped
time.sleep(1)


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("ns", ctypes.c_uint64)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


lib.cudaLaunchKernel.argtypes = [ctypes.POINTER(Kernel), Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
gemm_kernel, softmax_kernel = Kernel(b"_Z4gemmILi128EEvPfS0_S0_i", 20000), Kernel(b"_Z7softmaxPfi", 5000)


def gemm():
    lib.cudaLaunchKernel(gemm_kernel, Dim3(8, 1, 1), Dim3(64, 1, 1), None, 0, None)


def softmax():
    lib.cudaLaunchKernel(softmax_kernel, Dim3(8, 1, 1), Dim3(64, 1, 1), None, 0, None)


def train(steps):
    for _ in range(steps):
        gemm()
        softmax()
        lib.cudaDeviceSynchronize()


threads = [threading.Thread(target=train, args=(int(sys.argv[2]),)) for _ in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
