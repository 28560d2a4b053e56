# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that sends a header and a body in two parts over a connection with Nagle's algorithm: each body waits for a delayed ACK."""
import socket
import threading

from lib import incident

MANIFEST = {
    "title": "Nagle's algorithm and delayed ACKs",
    "cause": "network",
    "words": [["Nagle"], ["delayed ACK"]],
    "clock": "requests",
    "packages": [],
}
requests = incident.Clock("requests")


def read_all(connection, length):
    data = b""
    while len(data) < length:
        data += connection.recv(length - len(data))
    return data


def put(connection, body):
    with requests:
        connection.sendall(b"%8d" % len(body))
        connection.sendall(body)
        return connection.recv(2)  # cause


def answer(connection):
    while True:
        read_all(connection, int(read_all(connection, 8)))
        connection.sendall(b"OK")


def work(port):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while True:
            put(connection, b"x" * 400)


def main():
    server = socket.create_server(("127.0.0.1", 0))
    incident.in_background(work, server.getsockname()[1])
    threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
