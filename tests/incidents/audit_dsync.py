# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that appends each event to an audit log opened with O_DSYNC: each write of 200 bytes waits for the disk."""
import os

from lib import incident

MANIFEST = {
    "title": "small writes with O_DSYNC",
    "cause": "disk",
    "words": [["disk", "sync"]],
    "clock": "writes",
    "packages": [],
}
writes = incident.Clock("writes")


def audit(log, event):
    with writes:
        os.write(log, event)  # cause


def handle(path):
    log, number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_DSYNC), 0
    while True:
        number += 1
        sum(range(20_000))
        audit(log, f"event {number} {'-' * 180}\n".encode())


def main():
    incident.in_background(handle, os.path.join(incident.folder(incident.disk()), "audit"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
