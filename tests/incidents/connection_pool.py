# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: eight threads share a pool of one connection to a slow service, and wait for that connection."""
import queue

import requests
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "a pool of one connection for eight threads",
    "cause": "pool of connections",
    "words": [["queue", "pool", "connection", "lock", "condition", "peer", "port"]],
    "clock": "waits",
    "packages": ["flask", "gunicorn", "requests"],
}
app = Flask(__name__)
connections = queue.Queue()
connections.put(requests.Session())
waits = incident.Clock("waits")


def check_out():
    with waits:
        return connections.get()  # waits


def ask_stock(service):
    session = check_out()
    try:
        return session.get(f"http://127.0.0.1:{service}/stock").text  # cause
    finally:
        connections.put(session)


@app.get("/stock/<int:service>")
def stock(service):
    return ask_stock(service)


def main():
    service = incident.slow_server(50)
    incident.load(incident.gunicorn(__file__, 1, 8), f"/stock/{service}", 8, 2)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
