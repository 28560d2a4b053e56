# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Four worker processes that inherit their parent's affinity: all compute on one CPU while the others are free."""
import multiprocessing
import os
import time

from lib import incident

MANIFEST = {
    "title": "four workers pinned to one CPU",
    "cause": "affinity",
    "words": [["affinity", "pinned", "one CPU"]],
    "clock": "lost",
    "packages": [],
}
lost = incident.Clock("lost")


def resize(width):
    start, cpu, total = incident.now(), time.thread_time_ns(), 0
    for number in range(400_000):  # cause
        total += number % width  # cause
    lost.add_lost(start, cpu)
    return total


def worker():
    while True:
        resize(640)


def main():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for _ in range(4):
        multiprocessing.Process(target=worker, daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
