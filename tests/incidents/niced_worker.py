# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A worker that was started with `nice`, beside two processes of normal priority that use all CPUs."""
import os
import sys
import time

from lib import incident

MANIFEST = {
    "title": "a niced worker beside two busy processes",
    "cause": "CPU taken by others",
    "words": [["CPU"], ["priorit", "nice", "sha256sum"]],
    "must": "cause",
    "clock": "lost",
    "packages": [],
    "programs": ["sha256sum"],
}
lost = incident.Clock("lost")


def thumbnail(picture):
    total = 0
    for number in range(10_000):
        total += number * picture % 7  # cause
    return total


def work():
    os.nice(10)
    print(flush=True)
    picture = 0
    while True:
        picture += 1
        start, cpu = incident.now(), time.thread_time_ns()
        thumbnail(picture)
        lost.add_lost(start, cpu)


def main():
    if sys.argv[1:]:
        work()
    incident.clocks_folder()
    for _ in range(os.cpu_count()):
        incident.start("sha256sum", "/dev/zero")
    incident.again(os.path.abspath(__file__), "worker")
    incident.serve(__file__)


if __name__ == "__main__":
    main()
