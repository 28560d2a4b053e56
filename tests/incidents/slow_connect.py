# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that reports to a metrics server which does not accept connections: each attempt times out."""
import contextlib
import socket
import time

from lib import incident

MANIFEST = {
    "title": "a connect that is not answered",
    "cause": "connect",
    "words": [["connect", "peer", "port", "network", "127.0.0.1"]],
    "clock": "connects",
    "packages": [],
}
connects = incident.Clock("connects")


def push_metrics(port, value):
    with contextlib.suppress(OSError), connects:
        with socket.create_connection(("127.0.0.1", port), timeout=0.7) as metrics:  # cause
            metrics.sendall(f"requests {value}\n".encode())


def work(port):
    value = 0
    while True:
        value += sum(range(1000))
        push_metrics(port, value)
        time.sleep(0.05)


def main():
    port = incident.free_port()
    incident.start(incident.build("lib/peer.c"), "full", port)
    time.sleep(0.5)
    incident.in_background(work, port)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
