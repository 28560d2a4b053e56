# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A pool of processes that gets the whole price list with each task: most of the time it is pickled, sent and unpickled."""
import multiprocessing
import time

from lib import incident

MANIFEST = {
    "title": "a pool whose arguments are large",
    "cause": "pickling",
    "words": [["pickl", "pipe", "argument"]],
    "clock": "waits",
    "packages": [],
}
waits = incident.Clock("waits")
PRICES = [{"article": n, "price": n / 7, "name": f"article {n}"} for n in range(30_000)]


def total(task):
    prices, first = task
    return sum(row["price"] for row in prices[first::100])


def make_quote(pool):
    with waits:
        totals = pool.map(total, [(PRICES, first) for first in range(8)], chunksize=1)  # waits
    return sum(totals)


def quotes(pool):
    while True:
        make_quote(pool)
        time.sleep(0.005)


def main():
    incident.in_background(quotes, multiprocessing.Pool(2))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
