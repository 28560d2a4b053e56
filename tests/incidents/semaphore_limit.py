# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Eight threads ask a bank's service that allows two connections: six of them always wait at the semaphore."""
import threading

import requests

from lib import incident

MANIFEST = {
    "title": "a semaphore of two for eight threads",
    "cause": "semaphore",
    "words": [["semaphore", "condition", "queue", "lock"]],
    "clock": "waits",
    "packages": ["requests"],
}
bank_slots = threading.BoundedSemaphore(2)
waits = incident.Clock("waits")


def transfer(service, amount):
    with waits:
        bank_slots.acquire()  # waits
    try:
        return requests.get(f"http://127.0.0.1:{service}/transfer/{amount}", timeout=9).status_code  # cause
    finally:
        bank_slots.release()  # cause


def work(service):
    while True:
        transfer(service, 10)
        sum(range(1000))


def main():
    service = incident.slow_server(120)
    for _ in range(8):
        incident.in_background(work, service)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
