# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A report is made by four threads and joined: three end at once, one waits for a slow service."""
import threading
import time

import requests

from lib import incident

MANIFEST = {
    "title": "`join` of threads, of which one is slow",
    "cause": "join",
    "words": [["join", "peer", "port", "network", "wait"]],
    "must": "cause",
    "clock": "waits",
    "packages": ["requests"],
}
waits = incident.Clock("waits")


def fetch_exchange_rates(service):
    requests.get(f"http://127.0.0.1:{service}/rates")  # cause


def count_orders():
    sum(range(100_000))


def make_report(service):
    parts = [threading.Thread(target=count_orders) for _ in range(3)]
    parts.append(threading.Thread(target=fetch_exchange_rates, args=(service,)))
    for part in parts:
        part.start()
    for part in parts:
        with waits:
            part.join()  # waits


def reports(service):
    while True:
        make_report(service)
        time.sleep(0.01)


def main():
    incident.in_background(reports, incident.slow_server(250))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
