# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls CUDA libraries from Python and prints each call's stack. Runs under every CPython that the tests have.

    drv_python.py LIBCUDART LIBCUDA     prints "ready", waits for a line, calls, then prints one line per call:
                                        TID FUNCTION HELD(0, 1, -: no Python) [NAME:LINE ..], outermost frame first
"""
import ctypes
import sys
import threading

LAUNCH = (ctypes.c_void_p(0xf000), 1, 1, 1, 32, 1, 1, 0, None, None, None)
# (function, arguments), one for each event that has a stack
RUNTIME = [("cudaMalloc", (ctypes.byref(ctypes.c_void_p()), 100)), ("cudaDeviceSynchronize", ()),
           ("cudaLaunchKernel", LAUNCH), ("cudaMemcpyAsync", (0, 0, 1, 1, None)), ("cudaMemset", (0, 0, 1)),
           ("cudaGraphLaunch", (None, None)), ("cudaFree", (None,))]
DRIVER = [("cuLaunchKernel", LAUNCH), ("cuMemcpyHtoDAsync_v2", (0, 0, 1, None)), ("cuMemsetD8Async", (0, 0, 1, None)),
          ("cuMemAlloc_v2", (ctypes.byref(ctypes.c_void_p()), 100)), ("cuMemFree_v2", (0,)), ("cuGraphLaunch", (0, 0)),
          ("cuCtxSynchronize", ())]
TRUTH = []


def thread_id():
    return ctypes.CDLL(None).syscall(186)  # gettid, which Python 3.7 lacks


def note(function, held, frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append("%s:%d" % (getattr(code, "co_qualname", code.co_name).replace(" ", ""), frame.f_lineno))
        frame = frame.f_back
    TRUTH.append("%d %s %d %s" % (thread_id(), function, held, " ".join(reversed(frames))))


def call(library, held, function, args):
    # on one line, so that the frame's line is that of the call
    getattr(library, function)  # the first call is slow
    return (note(function, held, sys._getframe()), getattr(library, function)(*args))[1]


def by_generator(library, held, functions):
    for f in functions:
        yield call(library, held, *f)


def deeper(depth, library, held, functions):
    if depth:
        deeper(depth - 1, library, held, functions)
    else:
        list(by_generator(library, held, functions))


def work(path, functions):
    deeper(3, ctypes.CDLL(path), False, functions)
    deeper(0, ctypes.PyDLL(path), True, functions)


def from_no_python(path):
    """Calls from a thread without a Python thread state."""
    pthread, libc = ctypes.c_ulong(), ctypes.CDLL(None)
    start = ctypes.cast(ctypes.CDLL(path).cudaDeviceSynchronize, ctypes.c_void_p)
    libc.pthread_create(ctypes.byref(pthread), None, start, None)
    libc.pthread_join(pthread, None)
    TRUTH.append("0 cudaDeviceSynchronize -")


def main():
    # loaded before the recording begins, so that there is no attach gap
    loaded = [ctypes.CDLL(path) for path in sys.argv[1:]]
    print("ready" if len(loaded) == 2 else "", flush=True)
    sys.stdin.readline()
    for path, functions in ((sys.argv[1], RUNTIME), (sys.argv[2], DRIVER)):
        work(path, functions)
        t = threading.Thread(target=work, args=(path, functions))
        t.start()
        t.join()
    from_no_python(sys.argv[1])
    print("\n".join(TRUTH + ["end"]), flush=True)
    sys.stdin.readline()


main()
