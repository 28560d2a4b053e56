# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""rounds_work.py ROUNDS: a tracer comes and leaves ROUNDS times, as the shim sees it, while two threads call the functions. Prints ok."""
import ctypes
import os
import sys
import threading
import time

import functions_work as work

os.environ["SONDE_CUPTI_LOOK_MS"] = "2"
ctypes.CDLL(None).setenv(b"SONDE_CUPTI_LOOK_MS", b"2", 1)
shim = ctypes.CDLL(os.environ["SHIM"])
semaphore = ctypes.c_uint16.in_dll(shim, "sonde_cupti_semaphore_functions")
configuration = (ctypes.c_char * 32768).in_dll(shim, "sonde_cupti_functions_configuration")
VECTORCALL = ctypes.c_ssize_t.from_address(id(type(work.fib)) + 7 * 8).value
stop = False


def function(name):
    at = work
    for part in name.split("."):
        at = at.__dict__[part]
    return getattr(at, "__func__", at)


def state():
    return [(ctypes.c_uint64.from_address(id(f) + VECTORCALL).value, id(f.__code__)) for f in map(function, work.NAMES)]


def call():
    while not stop:
        work.work()


def wait(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


before = state()
text = b"".join(b"functions_work\t%s\t\t0\n" % name.encode() for name in work.NAMES)
ctypes.memmove(ctypes.addressof(configuration) + 32, text, len(text))
ctypes.c_uint32.from_address(ctypes.addressof(configuration) + 16).value = len(text)
threads = [threading.Thread(target=call) for _ in range(2)]
for t in threads:
    t.start()
for _ in range(int(sys.argv[1])):
    semaphore.value = 1
    wait(lambda: all(now != was for now, was in zip(state(), before)))
    semaphore.value = 0
    wait(lambda: state() == before)
stop = True
for t in threads:
    t.join()
print("ok" if state() == before else "changed")
