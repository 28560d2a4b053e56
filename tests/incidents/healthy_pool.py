# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service with a pool of eight threads, one of three processes and a queue, all with little to do."""
import concurrent.futures
import queue
import threading
import time

from lib import incident

MANIFEST = {
    "title": "nothing: idle pools of threads and processes",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "fsync", "condition", "quota", "throttl", "starv", "straggl", "slept", "queue", "child"],
    "packages": [],
}


def work(number):
    return sum(range(number))


def consume(jobs):
    while True:
        jobs.get()


def main():
    processes, threads = concurrent.futures.ProcessPoolExecutor(3), concurrent.futures.ThreadPoolExecutor(8)
    jobs = queue.Queue()
    threading.Thread(target=consume, args=(jobs,), daemon=True).start()

    def trickle():
        while True:
            processes.submit(work, 1000)
            for _ in range(8):
                threads.submit(work, 1000)
            jobs.put(1)
            time.sleep(0.25)
    incident.in_background(trickle)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
