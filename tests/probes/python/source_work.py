# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that compute, sleep, and wait for a lock. Lines that must be quoted end with a comment."""
import threading
import time

LOCK = threading.Lock()


def compute():
    end = time.thread_time() + 0.5
    while time.thread_time() < end:
        sum(range(20000))  # computes


def hold():
    for _ in range(40):
        with LOCK:
            time.sleep(0.04)  # holds
        time.sleep(0.001)


def wait_for_lock():
    for _ in range(20):
        with LOCK:  # wants
            pass
        time.sleep(0.005)


input()
compute()
for target in (hold, wait_for_lock, wait_for_lock):
    threading.Thread(target=target).start()
time.sleep(1)  # waits
