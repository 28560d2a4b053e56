#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""train.py DOUBLES [SECONDS]: a typical training loop with a problem: the GPU is idle, because the thread that launches its work
waits for the GIL, which the data loader's thread holds. Runs for SECONDS, or until killed. DOUBLES is the folder of the doubles of
libcuda and libcudart, which simulate a GPU, or "torch" for PyTorch on a real one. The Python code is the same for both.
"""
import glob
import os
import queue
import sys
import threading
import time

LAYERS = 4


class Simulated:
    """The CUDA calls that PyTorch would make; kernels take a given time."""

    def __init__(self, directory):
        import ctypes as c

        path = sorted(glob.glob(os.path.join(directory, "libcudart.so.*")))[-1]
        # as PyTorch's libraries, which need CUPTI: the shim uses the one that is loaded, whatever CUPTI ld.so.conf has
        for cupti in glob.glob(os.path.join(directory, "libcupti.so.*")):
            c.CDLL(cupti)
        # like PyTorch: launches keep the GIL, waits release it
        self.with_gil, self.without_gil, self.c = c.PyDLL(path), c.CDLL(path), c

        class Dim3(c.Structure):
            _fields_ = [("x", c.c_uint), ("y", c.c_uint), ("z", c.c_uint)]

        class Kernel(c.Structure):
            _fields_ = [("name", c.c_char_p), ("ns", c.c_uint64)]

        self.with_gil.cudaLaunchKernel.argtypes = [c.c_void_p, Dim3, Dim3, c.c_void_p, c.c_size_t, c.c_void_p]
        self.block = Dim3(128, 1, 1)
        self.dim3 = Dim3
        self.kernels = {name: Kernel(mangled, us * 1000) for name, mangled, us in (
            ("gemm", b"_Z4gemmILi128EEvPfS0_S0_i", 350), ("softmax", b"_Z7softmaxPfi", 100),
            ("layer_norm", b"_Z10layer_normPfS_i", 60), ("gemm_backward", b"_Z13gemm_backwardILi128EEvPfS0_S0_i", 500),
            ("adam", b"_Z4adamPfS_S_f", 200))}
        self.stream, self.weights = c.c_void_p(), self.allocate(64 << 20)
        self.must(self.with_gil.cudaStreamCreate(c.byref(self.stream)))
        self.host = c.create_string_buffer(4 << 20)

    def must(self, error):
        if error:
            sys.exit(f"train.py: CUDA error {error}")

    def allocate(self, size):
        address = self.c.c_void_p()
        self.must(self.with_gil.cudaMalloc(self.c.byref(address), self.c.c_size_t(size)))
        return address

    def free(self, address):
        self.must(self.with_gil.cudaFree(address))

    def launch(self, name, blocks):
        self.must(self.with_gil.cudaLaunchKernel(self.c.byref(self.kernels[name]), self.dim3(blocks, 1, 1), self.block, None,
                                                1024, self.stream))

    def upload(self, batch):
        address = self.allocate(len(self.host))
        self.must(self.with_gil.cudaMemcpyAsync(address, self.host, self.c.c_size_t(len(self.host)), 1, self.stream))
        return address

    def zero_gradients(self):
        self.must(self.with_gil.cudaMemsetAsync(self.weights, 0, self.c.c_size_t(16 << 20), self.stream))

    def item(self):
        """Copies the loss to the host, which waits for all work in the stream."""
        self.must(self.without_gil.cudaStreamSynchronize(self.stream))
        self.must(self.without_gil.cudaMemcpy(self.host, self.weights, self.c.c_size_t(4), 2))


class Torch:
    def __init__(self):
        import torch

        self.torch, self.x = torch, torch.randn(2048, 2048, device="cuda")

    def launch(self, name, blocks):
        if name.startswith("gemm"):
            self.x = self.x @ self.x * 1e-3
        elif name == "softmax":
            self.x = self.x.softmax(1)
        else:
            self.x = self.x * 1.01

    def upload(self, batch):
        return self.torch.empty(1 << 20).to("cuda", non_blocking=True)

    def free(self, address):
        pass

    def zero_gradients(self):
        self.x.zero_()

    def item(self):
        return self.x[0, 0].item()


def name_thread(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
        f.write(name)


def decode(size):
    """The Python part of a data loader, which keeps the GIL."""
    x = 1
    for i in range(size):
        x = (x * 31 + i) % 1000003
    return x


def load(batches):
    name_thread("loader")
    while True:
        batches.put(decode(100000))


def forward(gpu, batch):
    for _ in range(LAYERS):
        gpu.launch("layer_norm", 64)
        gpu.launch("gemm", 512)
        gpu.launch("softmax", 128)


def backward(gpu):
    for _ in range(LAYERS):
        gpu.launch("gemm_backward", 512)


def optimizer_step(gpu):
    gpu.launch("adam", 256)
    gpu.zero_gradients()


def train(gpu, batches, until):
    while time.monotonic() < until:
        batch = gpu.upload(batches.get())
        forward(gpu, batch)
        backward(gpu)
        optimizer_step(gpu)
        gpu.item()
        gpu.free(batch)


def main():
    gpu = Torch() if sys.argv[1] == "torch" else Simulated(sys.argv[1])
    name_thread("train")
    batches = queue.Queue(2)
    threading.Thread(target=load, args=(batches,), daemon=True).start()
    train(gpu, batches, time.monotonic() + float(sys.argv[2]) if len(sys.argv) > 2 else float("inf"))


main()
