# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A worker that delivers messages to a server that is down: it sleeps longer and longer between its attempts."""
import contextlib
import socket
import time

from lib import incident

MANIFEST = {
    "title": "retries with growing delays",
    "cause": "sleep",
    "words": [["slept", "sleep"]],
    "clock": "sleeps",
    "packages": [],
}
sleeps = incident.Clock("sleeps")


def deliver(port, message):
    for attempt in range(5):
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", port), timeout=1) as server:
                return server.sendall(message)
        with sleeps:
            time.sleep(0.02 * 2 ** attempt)  # cause


def work(port):
    number = 0
    while True:
        number += 1
        sum(range(200_000))
        deliver(port, f"message {number}\n".encode())


def main():
    incident.in_background(work, incident.free_port())
    incident.serve(__file__)


if __name__ == "__main__":
    main()
