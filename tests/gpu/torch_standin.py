# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stands in for torch_work.py where there are only the doubles of CUDA: the same questions and lines, by the driver's API.

What torch.profiler would have seen is what the simulated GPU is known to do. So the checks of PyTorch are proved, not PyTorch.
"""
import ctypes
import json
import os
import signal
import sys
import time

os.environ.pop("LD_PRELOAD", None)
PROFILE = "--profile" in sys.argv
STEPS = 30
KERNELS = {b"_Z4gemmPfS_S_i": 40000, b"_Z4geluPfi": 6000, b"triton_add_0": 9000}  # ns
NAMES = {b"_Z4gemmPfS_S_i": "gemm(float*, float*, float*, int)", b"_Z4geluPfi": "gelu(float*, int)", b"triton_add_0": "triton_add_0"}
SPIN, SPIN_NAME = b"_Z11spin_kernell", "spin_kernel(long)"
SPIN_NS = 100000000  # longer than the host takes to enqueue what follows, also on a busy machine
TEXT = b".version 7.0\n" + b"".join(b".entry %s()\n// simulated: ns %d\n" % k for k in [*KERNELS.items(), (SPIN, SPIN_NS)])
cuda = ctypes.CDLL("libcuda.so.1")


def must(result):
    assert result == 0, result


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def pointer():
    return ctypes.c_void_p()


class Gpu:
    def __init__(self):
        must(cuda.cuInit(0))
        context, module, self.stream = pointer(), pointer(), pointer()
        must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        must(cuda.cuCtxSetCurrent(context))
        must(cuda.cuModuleLoadData(ctypes.byref(module), TEXT))
        must(cuda.cuStreamCreate(ctypes.byref(self.stream), 1))
        self.functions = {}
        for name in [*KERNELS, SPIN]:
            self.functions[name] = pointer()
            must(cuda.cuModuleGetFunction(ctypes.byref(self.functions[name]), module, name))
        self.events = [pointer(), pointer()]
        for e in self.events:
            must(cuda.cuEventCreate(ctypes.byref(e), 0))
        self.memory = ctypes.c_uint64()
        must(cuda.cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(1 << 20)))

    def launch(self, name):
        must(cuda.cuLaunchKernel(self.functions[name], 8, 1, 1, 128, 1, 1, 0, self.stream, None, None))

    def step(self):
        for name in KERNELS:
            self.launch(name)
        must(cuda.cuMemsetD8Async(self.memory, 1, ctypes.c_size_t(4096), self.stream))

    def synchronize(self):
        must(cuda.cuCtxSynchronize())


def seen(steps, spins=1):
    kernels = {NAMES[name]: [ns] * steps for name, ns in KERNELS.items()}
    return {"kernels": dict(kernels, **({SPIN_NAME: [SPIN_NS]} if spins else {})), "copies": [], "sets": [4096] * steps}


def window(gpu, kind):
    ms = ctypes.c_float()
    gpu.step()
    gpu.synchronize()
    begin = now()
    gpu.launch(SPIN)
    must(cuda.cuEventRecord(gpu.events[0], gpu.stream))
    for _ in range(STEPS):
        gpu.step()
    must(cuda.cuEventRecord(gpu.events[1], gpu.stream))
    gpu.synchronize()
    must(cuda.cuEventElapsedTime(ctypes.byref(ms), *gpu.events))
    line = {"kind": kind, "begin": begin, "end": now(), "recorded": [begin, begin], "steps": STEPS, "event_ns": round(ms.value * 1e6),
            "threads": [int(t) for t in os.listdir("/proc/self/task")]}
    return dict(line, **seen(STEPS)) if PROFILE else line


def write_line(path, line):
    with open(path, "a") as f:
        f.write(json.dumps(line) + "\n")


def size():
    path = os.environ.get("SHIM_OUT")
    return os.path.getsize(path) if path and os.path.exists(path) else None


def switch(on):
    before = size()
    os.kill(os.getpid(), signal.SIGUSR1 if on else signal.SIGUSR2)
    until = time.monotonic() + 30
    while time.monotonic() < until and size() == before:
        time.sleep(0.01)


def main():
    what, gpu = sys.argv[1], Gpu()
    if what == "windows":
        for kind in ("fp32", "Triton"):
            write_line(sys.argv[2], window(gpu, kind))
        write_line(sys.argv[2], {"kind": "torch.compile", "error": "not in the doubles"})
    elif what == "loop":
        print("ready", flush=True)
        for line in sys.stdin:
            words, began = line.split(), time.perf_counter()
            if words[0] == "go":
                for _ in range(int(words[1])):
                    gpu.step()
                gpu.synchronize()
            elif os.environ.get("SHIM_OUT"):
                switch(words[0] == "on")
            print(f"{time.perf_counter() - began:.9f}", flush=True)
    elif what == "profilers":
        begin = now()
        gpu.step()
        gpu.synchronize()
        write_line(sys.argv[2], {"what": "torch.profiler first", "begin": begin, "end": now(), "kernels": len(KERNELS)})
        switch(True)
        gpu.step()
        gpu.synchronize()
        switch(False)


main()
