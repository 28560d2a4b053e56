#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""export_mix.py LIBCUDART: threads that contend for the GIL and call a libcudart, from one line on stdin to the next. Prints "ready"."""
import ctypes
import sys
import threading

lib = ctypes.CDLL(sys.argv[1])
end = threading.Event()


def name_thread(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "wb") as f:
        f.write(name)


def crunch(n):
    # a name with invalid bytes
    name_thread(b"crunch-%d \xff\x1b" % n)
    x = 0
    while not end.is_set():
        for i in range(2000):
            x += i
        lib.cudaMemcpy(None, None, ctypes.c_size_t(n), 1)


def wait(n):
    name_thread(b"wait-%d" % n)
    while not end.is_set():
        lib.cudaDeviceSynchronize()


def hang():
    # never returns
    name_thread(b"hang")
    lib.cudaEventSynchronize(ctypes.c_void_p(0xe1))


print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=f, args=a, daemon=f is hang)
           for f, a in ((crunch, (1,)), (crunch, (2,)), (wait, (1,)), (hang, ()))]
for t in threads:
    t.start()
sys.stdin.readline()
end.set()
for t in threads[:3]:
    t.join()
