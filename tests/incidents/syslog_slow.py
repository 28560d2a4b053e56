# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service whose threads log each order to a log collector over TCP, which reads slowly."""
import logging
import logging.handlers
import socket

from lib import incident

MANIFEST = {
    "title": "logging to a slow collector over TCP",
    "cause": "slow peer",
    "words": [["socket", "port", "peer", "send", "network", "syslog"]],
    "clock": "logs",
    "packages": [],
}
log = logging.getLogger("orders")
logs = incident.Clock("logs")


def handle_order(number):
    with logs:
        log.warning("order %d: %s", number, "-" * 900)  # cause


def work():
    number = 0
    while True:
        number += 1
        sum(range(20_000))
        handle_order(number)


def main():
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        handler = logging.handlers.SysLogHandler(listener.getsockname(), socktype=socket.SOCK_STREAM)
        handler.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        collector, _ = listener.accept()
    log.addHandler(handler)
    incident.start(incident.build("lib/peer.c"), "drain", 2000, 50, stdin=collector)
    collector.close()
    for _ in range(4):
        incident.in_background(work)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
