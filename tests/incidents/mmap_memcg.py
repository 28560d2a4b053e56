# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An index of 160 MB is read through mmap in a container limited to 48 MB: nearly every lookup reads the disk."""
import mmap
import os
import random

from lib import incident

MANIFEST = {
    "title": "mmap reads in a small memory cgroup",
    "cause": "page faults from disk",
    "words": [["fault", "disk", "mapped", "mmap", "memory"], ["memory limit"]],
    "clock": "reads",
    "packages": [],
}
SIZE = 160 << 20
reads = incident.Clock("reads")


def look_up(index, key):
    with reads:
        return index[key]  # cause


def queries(index):
    while True:
        sum(look_up(index, random.randrange(SIZE)) for _ in range(100))


def main():
    path = os.path.join(incident.folder(incident.disk()), "index")
    incident.cgroup("memory", v2_memory__max=48 << 20, v1_memory__limit_in_bytes=48 << 20)
    with open(path, "wb") as f:
        for _ in range(SIZE >> 20):
            f.write(os.urandom(1 << 20))
        os.fsync(f.fileno())
    with open(path, "rb") as f:
        index = mmap.mmap(f.fileno(), SIZE, prot=mmap.PROT_READ)
    index.madvise(mmap.MADV_RANDOM)
    incident.in_background(queries, index)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
