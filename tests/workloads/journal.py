#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A deliberately slow program: four threads check blocks of data and log each in a journal, for N seconds. `batch` is the fixed form.

Each entry is synced to the disk while its thread holds the journal's lock, so that the other threads wait for the lock and thus
for the disk. docs/reading-a-trace.md shows how to find this.
"""
import hashlib
import os
import sys
import tempfile
import threading
import time

PIECE = b"x" * 200_000
BATCH = 32


class Journal:
    def __init__(self, folder, batch):
        self.file = open(os.path.join(folder, "journal"), "wb")
        self.lock = threading.Lock()
        self.batch, self.noted = batch, 0

    def note(self, text):
        with self.lock:
            self.file.write(text + b"\n")
            self.noted += 1
            if self.noted % self.batch == 0:
                self.file.flush()
                os.fsync(self.file.fileno())


def check(name, journal, until):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
        f.write(name)
    while time.monotonic() < until:
        journal.note(hashlib.sha256(PIECE).hexdigest().encode())


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(dir=".") as folder:
        journal = Journal(folder, BATCH if "batch" in sys.argv else 1)
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=check, args=(f"check-{i}", journal, until)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(f"{journal.noted / seconds:,.0f} pieces a second")


main()
