# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Threads that wait for locks whose holders they log: lock_planted.py FOLDER SECONDS MODE... The folder has lock_hold.so. Waits for
a line first. Prints each hold: "hold LOCK TID WAITED_AT RELEASED_AT ASKED GOT RELEASED", lines of this file and ns.

Modes: ext (mutexes of a C extension), lock (threading.Lock), convoy (ten threads), chain (a holder that waits for another lock),
timeout (acquire with a timeout), rlock, condition, idle (a pool without work, a queue, an event), calm (no contention).
"""
# A lock is taken or released, and its line noted, in one line.
# ruff: noqa: E702
import random
import sys
import threading
import time

log = []
stop = False


def line():
    return sys._getframe(1).f_lineno


class Logged:
    """A lock that logs the times of each hold."""

    def __init__(self, name, lock):
        self.name, self.lock = name, lock

    def note(self, waited_at, released_at, asked, got, released):
        log.append((self.name, threading.get_native_id(), waited_at, released_at, asked, got, released))


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def compute(ns):
    until = now() + ns
    while now() < until:
        pass


# mode ext: one call waits and releases

def ext_reload(hold):
    while not stop:
        hold(0, line(), 20000, 0)
        time.sleep(0.002)


def ext_compute(hold):
    while not stop:
        hold(0, line(), 0, 8000)
        time.sleep(0.004)


def ext_handle(hold):
    while not stop:
        hold(0, line(), 0, 100)
        time.sleep(0.003)


# Python's locks

def reload(lock, nap=0.02, pause=0.002):
    while not stop:
        asked = now()
        lock.lock.acquire(); at = line()
        got = now()
        time.sleep(nap)
        released = now()
        lock.lock.release(); lock.note(at, line(), asked, got, released)
        time.sleep(pause)


def handle(lock):
    while not stop:
        asked = now()
        lock.lock.acquire(); at = line()
        got = now()
        released = now()
        lock.lock.release(); lock.note(at, line(), asked, got, released)
        time.sleep(0.001)


def impatient(lock):
    while not stop:
        asked = now()
        if lock.lock.acquire(True, 0.006):
            at = line() - 1
            got = now()
            released = now()
            lock.lock.release(); lock.note(at, line(), asked, got, released)
        else:
            at = line() - 6
            lock.note(at, 0, asked, now(), 0)
        # Regular pauses could keep in step with the holder, so that no release would ever have a waiter
        time.sleep(random.uniform(0.0005, 0.004))


def middle(outer, inner):
    """Holds the outer lock while it waits for the inner one."""
    while not stop:
        outer.lock.acquire()
        asked = now()
        inner.lock.acquire(); at = line()
        got = now()
        released = now()
        inner.lock.release(); inner.note(at, line(), asked, got, released)
        outer.lock.release()
        time.sleep(0.001)


def consumer(condition, done):
    with condition:
        while not stop:
            condition.wait(0.5)
    done.set()


def producer(condition):
    while not stop:
        time.sleep(0.01)
        with condition:
            condition.notify_all()


def getter(q):
    while q.get() is not None:
        pass


def threads_of(mode, folder):
    if mode == "ext":
        sys.path.insert(0, folder)
        import lock_hold
        return [(ext_reload, (lock_hold.hold,)), (ext_compute, (lock_hold.hold,))] + [(ext_handle, (lock_hold.hold,))] * 2
    if mode == "lock":
        lock = Logged(mode, threading.Lock())
        return [(reload, (lock,)), (handle, (lock,)), (handle, (lock,))]
    if mode == "convoy":
        lock = Logged(mode, threading.Lock())
        return [(reload, (lock, 0.002, 0))] * 10
    if mode == "chain":
        outer, inner = Logged("outer", threading.Lock()), Logged("inner", threading.Lock())
        return [(reload, (inner,)), (middle, (outer, inner)), (handle, (outer,))]
    if mode == "timeout":
        lock = Logged(mode, threading.Lock())
        return [(reload, (lock, 0.05)), (impatient, (lock,))]
    if mode == "rlock":
        lock = Logged(mode, threading.RLock())
        return [(reload, (lock,)), (handle, (lock,))]
    if mode == "condition":
        condition, done = threading.Condition(), threading.Event()
        return [(consumer, (condition, done)), (consumer, (condition, done)), (producer, (condition,))]
    if mode == "calm":
        return [(handle, (Logged(mode, threading.Lock()),)) for _ in range(2)]
    return []


def idle(seconds):
    """Threads that wait for work, which rarely or never arrives."""
    import concurrent.futures
    import queue

    q, event, pool = queue.SimpleQueue(), threading.Event(), concurrent.futures.ThreadPoolExecutor(4)
    waiting = [threading.Thread(target=getter, args=(q,)), threading.Thread(target=getter, args=(q,)),
               threading.Thread(target=event.wait)]
    for t in waiting:
        t.start()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for future in [pool.submit(time.sleep, 0.001) for _ in range(8)]:
            future.result()
        q.put(1)
        time.sleep(0.03)
    for _ in range(2):
        q.put(None)
    event.set()
    for t in waiting:
        t.join()
    pool.shutdown()


def main():
    global stop
    folder, seconds, modes = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    threads = [threading.Thread(target=f, args=args) for mode in modes for f, args in threads_of(mode, folder)]
    print("ready", flush=True)
    sys.stdin.readline()
    for t in threads:
        t.start()
    if "idle" in modes:
        idle(seconds)
    else:
        time.sleep(seconds)
    stop = True
    for t in threads:
        t.join()
    if "ext" in modes:
        import lock_hold
        log.extend(("ext", tid, at, at, *times) for _, tid, at, *times in lock_hold.log())
    for entry in log:
        print("hold", *entry)


main()
