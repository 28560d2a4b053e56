#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A contended GIL: two threads that compute, two that do short I/O; for N seconds, or until killed."""
import os
import sys
import threading
import time


def name_thread(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
        f.write(name)


def mix(x):
    for i in range(200):
        x = (x * 31 + i) % 1000003
    return x


def score(x):
    return mix(x) ^ mix(x + 1)


def crunch(name, until):
    name_thread(name)
    x = 1
    while time.monotonic() < until:
        x = score(x)


def pump(name, until):
    name_thread(name)
    out, into = os.pipe()
    while time.monotonic() < until:
        os.write(into, b"x")
        os.read(out, 1)
        time.sleep(0.002)


def main():
    until = time.monotonic() + float(sys.argv[1]) if len(sys.argv) > 1 else float("inf")
    jobs = [(crunch, "crunch-0"), (crunch, "crunch-1"), (pump, "pump-0"), (pump, "pump-1")]
    threads = [threading.Thread(target=f, args=(name, until), daemon=True) for f, name in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


main()
