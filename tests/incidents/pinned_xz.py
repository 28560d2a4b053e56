# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service whose start script pins it to the first CPU, where a backup's xz runs too; the other CPUs are free."""
import os
import subprocess
import time

from lib import incident

MANIFEST = {
    "title": "loop pinned to a core beside `xz`",
    "cause": "affinity",
    "words": [["affinity", "pinned", "xz"]],
    "clock": "lost",
    "packages": [],
    "programs": ["xz", "taskset"],
}
lost = incident.Clock("lost")


def settle(accounts):
    start, cpu, total = incident.now(), time.thread_time_ns(), 0
    for number in range(300_000):
        total += number % accounts  # cause
    lost.add_lost(start, cpu)
    return total


def settle_forever():
    while True:
        settle(1000)


def main():
    first = min(os.sched_getaffinity(0))
    data = incident.start("cat", "/dev/urandom", stdout=subprocess.PIPE)
    incident.start("taskset", "-c", first, "xz", "-9", "-c", stdin=data.stdout)
    os.sched_setaffinity(0, {first})
    incident.in_background(settle_forever)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
