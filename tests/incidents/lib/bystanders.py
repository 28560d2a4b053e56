# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ten processes and threads that work a little, mostly wait, and have no part in the incident."""
import asyncio
import concurrent.futures
import os
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
from lib import incident  # noqa: E402


def tick():
    """A heartbeat that computes a little each time."""
    while True:
        sum(range(3000))
        time.sleep(0.02)


def pool():
    """Three workers that mostly wait for a task."""
    with concurrent.futures.ThreadPoolExecutor(3) as workers:
        while True:
            workers.submit(sum, range(2000))
            time.sleep(0.2)


def consumer():
    """A queue that rarely gets an item."""
    jobs = queue.Queue()
    threading.Thread(target=lambda: [jobs.get() for _ in iter(int, 1)], daemon=True).start()
    while True:
        jobs.put(1)
        time.sleep(0.3)


def writer():
    """A log that is written without syncing it to the disk."""
    with tempfile.TemporaryFile("w") as log:
        while True:
            print(time.time(), file=log, flush=True)
            time.sleep(0.1)


def compressor():
    data = os.urandom(4000) * 5
    while True:
        zlib.compress(data)
        time.sleep(0.1)


def ping_pong():
    """A request and its answer over a socket."""
    a, b = socket.socketpair()
    threading.Thread(target=lambda: [b.sendall(b.recv(10)) for _ in iter(int, 1)], daemon=True).start()
    while True:
        a.sendall(b"ping")
        a.recv(10)
        time.sleep(0.05)


def timers():
    """An event loop with forty timers."""
    async def timer(number):
        while True:
            await asyncio.sleep(0.5 + number / 100)

    async def all_of_them():
        await asyncio.gather(*(timer(n) for n in range(40)))
    asyncio.run(all_of_them())


def locker():
    """A private lock without contention."""
    lock = threading.Lock()
    while True:
        with lock:
            time.sleep(0.05)


def fork(function):
    if not os.fork():
        function()


def main():
    for function in (tick, pool, timers, writer):
        fork(function)
    subprocess.Popen(["sh", "-c", "while sleep 0.3; do date; done"], stdout=subprocess.DEVNULL)
    subprocess.Popen(["tail", "-f", "/dev/null"])
    for function in (consumer, compressor, ping_pong, locker):
        incident.in_background(function)
    print("READY", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
