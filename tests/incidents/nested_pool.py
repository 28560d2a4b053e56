# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A pool of four threads whose tasks submit parts to the same pool and wait for them: three wait, one works."""
import concurrent.futures
import time

from lib import incident

MANIFEST = {
    "title": "tasks of a pool that wait for tasks of the same pool",
    "cause": "pool",
    "words": [["result", "pool", "thread", "queue"]],
    "clock": "waits",
    "packages": [],
}
pool = concurrent.futures.ThreadPoolExecutor(4)
waits = incident.Clock("waits")


def load_part(number):
    time.sleep(0.03)  # cause
    return number


def load_report(number):
    parts = [pool.submit(load_part, n) for n in range(5)]
    with waits:
        return sum(part.result() for part in parts)  # waits


def client(number):
    while True:
        pool.submit(load_report, number).result()


def main():
    for number in range(3):
        incident.in_background(client, number)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
