# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A store that reads records at random places of a file that the page cache does not hold."""
import os
import random

from lib import incident

MANIFEST = {
    "title": "random reads of a file outside of the page cache",
    "cause": "disk",
    "words": [["disk"]],
    "clock": "reads",
    "packages": [],
}
SIZE = 128 << 20
reads = incident.Clock("reads")


def read_record(store, offset):
    with reads:
        return os.pread(store, 4096, offset)  # cause


def answer(store):
    return sum(len(read_record(store, random.randrange(SIZE >> 12) << 12)) for _ in range(50))


def queries(path):
    store = os.open(path, os.O_RDONLY)
    os.posix_fadvise(store, 0, 0, os.POSIX_FADV_RANDOM)
    while True:
        answer(store)
        os.posix_fadvise(store, 0, 0, os.POSIX_FADV_DONTNEED)  # as if the file were far larger than the memory


def main():
    path = os.path.join(incident.folder(incident.disk()), "store")
    with open(path, "wb") as f:
        for _ in range(SIZE >> 20):
            f.write(os.urandom(1 << 20))
        os.fsync(f.fileno())
    incident.in_background(queries, path)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
