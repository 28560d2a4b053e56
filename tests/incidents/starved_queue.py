# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Four threads wait for a queue whose producer requests pages from a slow service, one after the other."""
import queue
import threading

import requests

from lib import incident

MANIFEST = {
    "title": "workers starved by a slow producer",
    "cause": "slow producer",
    "words": [["queue", "starv", "wait", "peer", "port", "network"]],
    "must": "cause",
    "clock": "fetches",
    "packages": ["requests"],
}
pages = queue.Queue()
fetches = incident.Clock("fetches")


def fetch_page(session, service, number):
    with fetches:
        return session.get(f"http://127.0.0.1:{service}/page/{number}").text  # cause


def produce(service):
    session, number = requests.Session(), 0
    while True:
        number += 1
        pages.put(fetch_page(session, service, number))


def transform():
    while True:
        page = pages.get()
        sum(map(ord, page * 100))


def main():
    service = incident.slow_server(150)
    incident.in_background(produce, service)
    for _ in range(4):
        threading.Thread(target=transform, daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
