# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A report made by a pool of four processes: one shard has all the slow work, three workers and the parent wait for it."""
import multiprocessing
import time

from lib import incident

MANIFEST = {
    "title": "a pool waits for one slow worker",
    "cause": "straggler",
    "words": [["pool", "straggl", "slow", "child", "wait"]],
    "must": "cause",
    "clock": "waits",
    "packages": [],
}
waits = incident.Clock("waits")


def summarise(shard):
    """Shard 3 holds the one large customer."""
    total = 0
    for number in range(40_000 if shard != 3 else 6_000_000):
        total += number % 7  # cause
    return total


def make_report(pool):
    with waits:
        sums = pool.map(summarise, range(4), chunksize=1)  # waits
    return sum(sums)


def reports(pool):
    while True:
        make_report(pool)
        time.sleep(0.02)


def main():
    incident.in_background(reports, multiprocessing.Pool(4))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
