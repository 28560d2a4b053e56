# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A job that calls sync() after each record, which writes the data of all other processes to the disk, too."""
import os

from lib import incident

MANIFEST = {
    "title": "`sync()` of all file systems for each record",
    "cause": "disk",
    "words": [["disk", "sync"]],
    "clock": "syncs",
    "packages": [],
}
syncs = incident.Clock("syncs")


def store(path, number):
    with open(path, "a") as f:
        f.write(f"record {number}\n")
    with syncs:
        os.sync()  # cause


def store_forever(path):
    number = 0
    while True:
        number += 1
        sum(range(3000))
        store(path, number)


def write_copies(path):
    while True:
        with open(path, "wb") as f:
            for _ in range(20):
                f.write(bytes(1 << 20))


def main():
    path = incident.folder(incident.disk())
    incident.in_background(store_forever, path + "/records")
    incident.in_background(write_copies, path + "/copy")
    incident.serve(__file__)


if __name__ == "__main__":
    main()
