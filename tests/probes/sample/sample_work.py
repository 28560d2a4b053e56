# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Spends measured time in known functions and lines: sample_work.py cpu SECONDS, sleep|short ROUNDS, hang SECONDS, gil|kernel SECONDS.
The seconds of cpu and kernel are CPU time, so that a busy machine gives them as many samples.

Waits for a line on stdin and prints its measurements as JSON. Runs on every CPython from 3.8 on.
"""
import json
import mmap
import os
import resource
import subprocess
import sys
import threading
import time

LINES = {}
FUNCTIONS = {}
WAITS = {}


def burn(n):
    x = 0
    for i in range(n):
        x += i * i
    return x


def logged(n):
    """Adds the time to the caller's line, as CPython reports it."""
    line = sys._getframe(1).f_lineno
    start = time.thread_time_ns()
    x = 0
    for i in range(n):
        x += i * i
    LINES[line] = LINES.get(line, 0) + time.thread_time_ns() - start
    return x


def seventy(n):
    x = 0
    for i in range(n):
        x += i * i
    return x


def twenty():
    x = 0
    for i in range(20000):
        x += i * i
    return x


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    return burn(10000)


def ten():
    return recurse(200)


class Manager:
    def __enter__(self):
        return self

    def __exit__(self, *what):
        logged(4000)


def decorated(n):
    return lambda f: f if logged(n) >= 0 else None


def generate():
    yield logged(3000)
    yield (
        logged(3000))


def constructs():
    a = max(
        1,
        logged(5000),
        logged(
            6000),
        2)
    b = {
        "x": 1,
        "y": logged(7000),
        "z": [
            logged(n)
            for n in (3000, 4000)
        ],
    }
    c = (logged(3000)
         if a else
         logged(4000))
    with Manager(), \
            Manager():
        logged(
            5000
        )
    try:
        logged(4000)
    finally:
        logged(3000)

    @decorated(
        4000)
    def inner():
        return (1
                + logged(3000)
                + 2)
    d = [
        inner(),
        sum(generate()),
        -1 < logged(3000)
        < logged(3000) + 1,
        f"{logged(3000)}"
        f"{logged(3000)}",
    ]
    assert d[0], (
        logged(1))
    return b, c


def timed(f, *args):
    start = time.thread_time_ns()
    f(*args)
    FUNCTIONS[f.__name__] = FUNCTIONS.get(f.__name__, 0) + time.thread_time_ns() - start


def nap(seconds=0.03):
    time.sleep(seconds)


def wait_for_lock(lock, seconds=0.02):
    lock.acquire(timeout=seconds)


def wait_for_pipe(fd):
    os.read(fd, 1)


def wait_for_child(pid):
    os.waitpid(pid, 0)


def write_later(fd):
    time.sleep(0.025)
    os.write(fd, b"x")


def switches():
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_nvcsw + used.ru_nivcsw


def slept(f, *args):
    """Notes when the function was called and returned, the CPU time in between, and how often the thread lost the CPU"""
    before = switches()
    start, cpu = time.monotonic_ns(), time.thread_time_ns()
    f(*args)
    cpu, end = time.thread_time_ns() - cpu, time.monotonic_ns()
    WAITS.setdefault(f.__name__, []).append((start, end, cpu, switches() - before))


def short(rounds):
    lock = threading.Lock()
    lock.acquire()
    for _ in range(rounds):
        # far above the threshold of 1 ms: a deadline that is read late makes a wait shorter
        slept(nap, 0.003)
        slept(wait_for_lock, lock, 0.004)


def sleep(rounds):
    lock = threading.Lock()
    lock.acquire()
    fds = os.pipe()
    for _ in range(rounds):
        slept(nap)
        slept(wait_for_lock, lock)
        thread = threading.Thread(target=write_later, args=(fds[1],))
        thread.start()
        slept(wait_for_pipe, fds[0])
        thread.join()
    for _ in range(5):
        child = subprocess.Popen(["sleep", "0.1"])
        slept(wait_for_child, child.pid)


def say_once_asleep():
    """Reports that the main thread sleeps, when it does."""
    while open("/proc/self/stat").read().rsplit(") ", 1)[1][0] != "S":
        time.sleep(0.01)
    print("hanging", flush=True)


def hang(seconds):
    threading.Thread(target=say_once_asleep).start()
    time.sleep(seconds)


def spin(end):
    while time.monotonic() < end:
        burn(1000)


def touch(memory):
    """Only page faults: the kernel maps and clears each page. It is in no system call."""
    memory[::mmap.PAGESIZE] = bytes(len(memory) // mmap.PAGESIZE)


def call(zero, buffer):
    """The kernel clears memory in a system call."""
    os.readv(zero, [buffer])


def work_in_kernel(end):
    zero, buffer = os.open("/dev/zero", os.O_RDONLY), bytearray(1 << 20)
    memory = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    while time.thread_time() < end:
        touch(memory)
        memory.madvise(mmap.MADV_DONTNEED)
        for _ in range(300):
            call(zero, buffer)


def main():
    mode, seconds = sys.argv[1], float(sys.argv[2])
    if mode == "sleep":
        subprocess.run(["sleep", "0"], check=True)  # the first start of a program may have to read its file
    sys.stdin.readline()
    end = time.monotonic() + seconds
    if mode == "gil":
        threads = [threading.Thread(target=spin, args=(end,)) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    elif mode == "hang":
        hang(seconds)
    elif mode == "kernel":
        work_in_kernel(time.thread_time() + seconds)
    elif mode == "sleep":
        sleep(int(seconds))
    elif mode == "short":
        short(int(seconds))
    else:
        drawn, end = 1, time.thread_time() + seconds
        while time.thread_time() < end:
            # rounds differ by more than a sampling period, as rounds of equal length could synchronize with the clock
            drawn = (drawn * 1103515245 + 12345) % (1 << 31)
            timed(seventy, 50000 + drawn % 40000)
            timed(twenty)
            timed(ten)
            timed(constructs)
    print(json.dumps({"functions": FUNCTIONS, "waits": WAITS, "lines": LINES}))


main()
