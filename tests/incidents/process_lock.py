# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Four processes that share a multiprocessing.Lock, which one of them holds while it writes a snapshot to the disk."""
import multiprocessing
import os
import time

from lib import incident

MANIFEST = {
    "title": "a `multiprocessing.Lock` held over a slow write",
    "cause": "lock",
    "words": [["lock", "semaphore"]],
    "clock": "waits",
    "packages": [],
}
waits = incident.Clock("waits")


def update(lock, counters, number):
    with waits:
        lock.acquire()  # waits
    counters[number] += 1
    lock.release()


def updater(lock, counters, number):
    while True:
        update(lock, counters, number)
        time.sleep(0.002)


def snapshot(lock, counters, path):
    with lock:
        for _ in range(30):
            with open(path, "w") as f:
                f.write(repr(list(counters)))
                f.flush()
                os.fsync(f.fileno())  # cause
        time.sleep(0.15)  # cause


def main():
    lock, counters = multiprocessing.Lock(), multiprocessing.Array("L", 4)
    for number in range(3):
        multiprocessing.Process(target=updater, args=(lock, counters, number), daemon=True).start()
    path = os.path.join(incident.folder(incident.disk()), "snapshot")
    incident.in_background(snapshot_forever, lock, counters, path)
    incident.serve(__file__)


def snapshot_forever(lock, counters, path):
    while True:
        snapshot(lock, counters, path)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
