# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server that sends a large answer to a client that reads slowly: sendall() waits until the client has read."""
import os
import socket
import sys
import time

from lib import incident

MANIFEST = {
    "title": "a client that reads its answer slowly",
    "cause": "network",
    "words": [["another process", "peer", "network"]],
    "clock": "answers",
    "packages": [],
}
answers = incident.Clock("answers")
REPORT = bytes(20_000_000)


def answer(connection):
    with answers:
        connection.sendall(REPORT)  # cause


def work(server):
    connection = server.accept()[0]
    while connection.recv(1):
        answer(connection)


def read_slowly(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while True:
            connection.sendall(b"?")
            left = len(REPORT)
            while left:
                left -= len(connection.recv(min(left, 60_000)))
                time.sleep(0.005)


def main():
    if sys.argv[1:]:
        print(flush=True)
        read_slowly(int(sys.argv[1]))
    server = socket.create_server(("127.0.0.1", 0))
    incident.in_background(work, server)
    incident.again(os.path.abspath(__file__), str(server.getsockname()[1]))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
