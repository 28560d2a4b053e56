# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A producer whose multiprocessing.Queue of five entries is always full, as the process that takes from it is slow."""
import multiprocessing

from lib import incident

MANIFEST = {
    "title": "a full `multiprocessing.Queue`",
    "cause": "queue",
    "words": [["queue", "result", "lock", "semaphore"]],
    "clock": "puts",
    "packages": [],
}
puts = incident.Clock("puts")


def read_rows(queue):
    number = 0
    while True:
        number += 1
        sum(range(1000))
        with puts:
            queue.put({"row": number})  # waits


def store_row(row):
    return sum(n * row["row"] % 7 for n in range(300_000))  # cause


def store(queue):
    while True:
        store_row(queue.get())


def main():
    queue = multiprocessing.Queue(5)
    for function in (read_rows, store):
        multiprocessing.Process(target=function, args=(queue,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
