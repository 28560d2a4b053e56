# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A mail filter that asks a slow daemon over its UNIX socket about each message."""
import os
import socket
import time

from lib import incident

MANIFEST = {
    "title": "a slow daemon behind a UNIX socket",
    "cause": "peer",
    "words": [["socket", "peer", "unix", "policy.sock"]],
    "clock": "asks",
    "packages": [],
}
asks = incident.Clock("asks")


def ask_policy(connection, sender):
    with asks:
        connection.sendall(f"sender={sender}\n".encode())
        return connection.recv(100)  # cause


def deliver(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    number = 0
    while True:
        number += 1
        ask_policy(connection, f"user{number}@example.org")
        sum(range(5000))


def main():
    path = os.path.join(incident.folder(), "policy.sock")
    incident.start(incident.build("lib/peer.c"), "slow", path, 40)
    incident.wait_for(lambda: os.path.exists(path))
    time.sleep(0.1)
    incident.in_background(deliver, path)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
