# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service whose log handler makes each line durable: fsync runs under the handler's lock, so that all threads that log wait."""
import logging
import os
import threading
import time

from lib import incident

MANIFEST = {
    "title": "fsync under logging's lock",
    "cause": "disk under a lock",
    "words": [["fsync", "disk"]],
    "must": "cause",
    "clock": "handle",
    "packages": [],
}
log = logging.getLogger("orders")
handled = incident.Clock("handle")


class DurableHandler(logging.FileHandler):
    def emit(self, record):
        super().emit(record)
        os.fsync(self.stream.fileno())  # cause


def handle(number):
    total = sum(range(200))
    with handled:
        log.info("order %d: %d", number, total)  # waits
    time.sleep(0.001)


def worker():
    number = 0
    while True:
        number += 1
        handle(number)


def main():
    log.addHandler(DurableHandler(os.path.join(incident.folder(incident.disk()), "orders.log")))
    log.setLevel(logging.INFO)
    for _ in range(6):
        threading.Thread(target=worker, daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
