# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gaps_work.py LIBCUDART ROUNDS: leaves GPU 0 idle for various reasons. The kernel that ends a gap has the name of its reason. Then
allocates and frees memory on two GPUs and prints "memory DEVICE ADDRESS BYTES LINE", with bytes 0 for a release."""
import ctypes
import os
import sys
import threading
import time

MS = 1000000
GAP = 0.03  # s
cuda = ctypes.CDLL(sys.argv[1])


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("ns", ctypes.c_uint64)]


class Dim3(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


cuda.cudaLaunchKernel.argtypes = [ctypes.c_void_p, Dim3, Dim3, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
cuda.cudaMemcpyAsync.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
for name in ("cudaStreamSynchronize", "cudaFree", "cudaEventSynchronize"):
    getattr(cuda, name).argtypes = [ctypes.c_void_p]
cuda.cudaEventRecord.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
cuda.cudaStreamWaitEvent.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
kernels = {}


def launch(name, ns, stream):
    mangled = f"_Z{len(name)}{name}v".encode()
    k = kernels.setdefault(name, Kernel(mangled, ns))
    assert not cuda.cudaLaunchKernel(ctypes.byref(k), Dim3(1, 1, 1), Dim3(32, 1, 1), None, 0, stream)


def new(function):
    handle = ctypes.c_void_p()
    assert not function(ctypes.byref(handle))
    return handle


def step(name, stream):
    """Launches the kernel that ends a gap, and waits for it, so that the next gap begins."""
    launch(name, MS, stream)


# another thread has the GIL
go, holds, held = threading.Semaphore(0), threading.Semaphore(0), threading.Semaphore(0)


def hold_it(asked):
    # longer than this thread took to get a CPU and the GIL, for which the main thread waited too, on a lock
    begun = time.monotonic()
    end = begun + GAP + 2 * (begun - asked[0])
    # ends the main thread's wait for the lock; from here on it waits for the GIL
    holds.release()
    while time.monotonic() < end:
        pass
    # drops the GIL here, so that this function is its holder
    time.sleep(0)


def holder():
    while go.acquire() and not done:
        hold_it(since)
        held.release()


def wait_for_gil():
    since[0] = time.monotonic()
    go.release()
    holds.acquire()
    held.acquire()


# another thread writes after the main thread has waited long enough, independent of when they get a CPU
slow = threading.Semaphore(0)


def writer():
    while slow.acquire() and not done:
        while time.monotonic() < since[0] + GAP:
            time.sleep(max(0, since[0] + GAP - time.monotonic()))
        os.write(pipe[1], b"x")


def read_slowly():
    since[0] = time.monotonic()
    slow.release()
    since[0] = time.monotonic()
    os.read(pipe[0], 1)


def synchronize():
    launch("elsewhere", int(GAP * 1e9), other)
    assert not cuda.cudaStreamSynchronize(other)


def think():
    end, n = time.monotonic() + GAP, 0
    while time.monotonic() < end:
        n += sum(range(100))
    return n


# another thread holds a lock, for which it first has to wait too
turn, taken = threading.Semaphore(0), threading.Semaphore(0)


def keeper():
    while turn.acquire() and not done:
        with lock:
            taken.release()
            time.sleep(GAP)


def wait_for_lock():
    with lock:
        turn.release()
        time.sleep(0.002)
    taken.acquire()
    with lock:
        pass


def wait_for_event():
    launch("elsewhere", int(GAP * 1e9), other)
    assert not cuda.cudaEventRecord(event, other)
    assert not cuda.cudaStreamWaitEvent(first, event, 0)


def sleep():
    time.sleep(GAP)


def copy_beside():
    """A copy and a kernel that overlap, each alone for a part of its time."""
    cuda.cudaMemcpyAsync(memory, host, 20 << 20, 1, second)
    launch("beside_copy", 3 * MS, first)
    assert not cuda.cudaStreamSynchronize(first)


lock, done, pipe, since = threading.Lock(), False, os.pipe(), [0]
# hold_it holds it for its full time
sys.setswitchinterval(10)
assert not cuda.cudaSetDevice(1)
other, event = new(cuda.cudaStreamCreate), new(cuda.cudaEventCreate)
assert not cuda.cudaSetDevice(0)
first, second = new(cuda.cudaStreamCreate), new(cuda.cudaStreamCreate)
host, memory = ctypes.create_string_buffer(20 << 20), ctypes.c_void_p()
threads = [threading.Thread(target=f) for f in (holder, keeper, writer)]
for t in threads:
    t.start()
step("begin", first)
for _ in range(int(sys.argv[2])):
    for cause in (wait_for_gil, sleep, read_slowly, synchronize, think, wait_for_lock, wait_for_event):
        cause()
        step(cause.__name__, first)
    copy_beside()
assert not cuda.cudaDeviceSynchronize()
done = True
go.release()
turn.release()
slow.release()
for t in threads:
    t.join()


def reported(device, address, size):
    # the call is one line above
    print("memory", device, address.value, size, sys._getframe(1).f_lineno - 1, sys._getframe(1).f_code.co_name)


def weights(device):
    address = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64 << 20))
    reported(device, address, 64 << 20)
    return address


def activations(device, n):
    address = ctypes.c_void_p()
    cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(n << 20))
    reported(device, address, n << 20)
    return address


def free(device, address):
    assert not cuda.cudaFree(address)
    reported(device, address, 0)


kept = []
for device in (0, 1):
    assert not cuda.cudaSetDevice(device)
    kept += [weights(device), weights(device)]
    for i in range(20):
        some = [activations(device, 1 + i % 7 + k) for k in range(3 + (i == 11) * 5)]
        for address in some[: len(some) - (i == 13)]:
            free(device, address)
assert not cuda.cudaSetDevice(0)
free(0, kept[1])
