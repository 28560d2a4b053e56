# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service whose log rotates often, and is compressed by the thread that happens to log, under the handler's lock."""
import gzip
import logging
import logging.handlers
import os
import shutil
import time

from lib import incident

MANIFEST = {
    "title": "logs compressed under logging's lock",
    "cause": "lock",
    "words": [["lock", "GIL"]],
    "clock": "calls",
    "packages": [],
}
calls = incident.Clock("calls")
log = logging.getLogger("shop")


def compress(source, target):
    with open(source, "rb") as plain, gzip.open(target, "wb", 9) as packed:
        shutil.copyfileobj(plain, packed)  # cause
    os.unlink(source)


def handle(number):
    time.sleep(0.002)
    with calls:
        log.info("order %d: %s", number, "0123456789abcdefghij" * 800)  # waits


def work():
    number = 0
    while True:
        number += 1
        handle(number)


def main():
    handler = logging.handlers.RotatingFileHandler(os.path.join(incident.folder(), "log"), maxBytes=12_000_000, backupCount=3)
    handler.rotator = compress
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    for _ in range(4):
        incident.in_background(work)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
