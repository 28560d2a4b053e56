# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A pool of processes in a control group that may use 40% of a CPU: they compute for 40 ms and are throttled for 60 ms."""
import multiprocessing
import time

from lib import incident

MANIFEST = {
    "title": "pool under a cgroup quota",
    "cause": "CPU quota",
    "words": [["quota", "throttl", "cgroup", "control group"]],
    "clock": "lost",
    "packages": [],
}
lost = incident.Clock("lost")


def render(page):
    start, cpu, total = incident.now(), time.thread_time_ns(), 0
    for number in range(200_000):
        total += number * page % 7  # cause
    lost.add_lost(start, cpu)
    return total


def pages(pool):
    while True:
        pool.map(render, range(8), chunksize=1)


def main():
    incident.cgroup("cpu", v2_cpu__max="40000 100000", v1_cpu__cfs_period_us=100000, v1_cpu__cfs_quota_us=40000)
    incident.in_background(pages, multiprocessing.Pool(2))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
