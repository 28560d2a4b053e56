# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that contend for the GIL. gil_work.py spin|hold|hog|interpreters|read|mixed SECONDS THREADS: prints "ready" and waits for a line."""
import os
import sys
import threading
import time

kind, seconds, count = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
end = 0.0
logs = {}


def tid():
    # threading.get_native_id exists since 3.8
    return threading.get_native_id()


def spin():
    x = 0
    while time.monotonic() < end:
        for i in range(2000):
            x += i


def hold():
    import gil_hold
    # different lengths, so that the threads don't synchronize
    n = len(logs)
    logs[tid()] = None
    logs[tid()] = gil_hold.hold(seconds, 300 + 170 * n, 40 + 90 * n)


def hog():
    # one thread never drops the GIL; the others wait for it
    first = not logs
    logs[tid()] = None
    if first:
        import gil_hold
        print("hog", tid(), flush=True)
        logs[tid()] = gil_hold.hold(seconds, seconds * 1e6, 0)
    else:
        spin()


def interpreters():
    # each thread runs an interpreter with its own GIL and two threads
    import _xxsubinterpreters as subs
    code = """
import threading, time
end = time.monotonic() + %f
def spin():
    while time.monotonic() < end:
        for i in range(2000):
            pass
t = [threading.Thread(target=spin) for _ in range(2)]
[x.start() for x in t]
[x.join() for x in t]
""" % seconds
    one = subs.create()
    subs.run_string(one, code)
    subs.destroy(one)


def read():
    # the convoy: frequent system calls, each of which drops the GIL
    fd = os.open("/dev/zero", os.O_RDONLY)
    while time.monotonic() < end:
        os.read(fd, 1)
        for _ in range(200):
            pass
    os.close(fd)


def mixed():
    # one thread spins; the others sleep and then need the GIL
    logs[tid()] = None
    if len(logs) == 1:
        return spin()
    while time.monotonic() < end:
        time.sleep(0.0004)


print("ready", os.getpid(), flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
threads = [threading.Thread(target=globals()[kind]) for _ in range(count)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if kind in ("hold", "hog"):
    for t in logs:
        for taken, dropped in logs[t] or []:
            print("hold", t, taken, dropped)
