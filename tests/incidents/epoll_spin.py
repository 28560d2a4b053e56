# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server whose event loop watches all connections for writing, too: they are always ready, and the loop never sleeps."""
import selectors
import socket

from lib import incident

MANIFEST = {
    "title": "an event loop that spins on writable connections",
    "cause": "CPU",
    "words": [["CPU", "comput", "spin"]],
    "clock": None,
    "packages": [],
}


def poll_once(selector):
    for key, events in selector.select():  # cause
        if events & selectors.EVENT_READ:
            key.fileobj.send(key.fileobj.recv(100))


def main():
    selector, others = selectors.DefaultSelector(), []
    for _ in range(3):
        one, other = socket.socketpair()
        selector.register(one, selectors.EVENT_READ | selectors.EVENT_WRITE)
        others.append(other)
    incident.in_background(poll_forever, selector)
    incident.clocks_folder()
    incident.serve(__file__)


def poll_forever(selector):
    while True:
        poll_once(selector)


if __name__ == "__main__":
    main()
