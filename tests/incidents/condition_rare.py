# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Consumers of a condition variable whose producer notifies only every tenth item: they wait although there is work."""
import collections
import threading
import time

from lib import incident

MANIFEST = {
    "title": "condition variable with a rare notify",
    "cause": "condition",
    "words": [["condition", "notif", "signal", "wait", "woken", "woke"]],
    "clock": "waits",
    "packages": [],
}
items = collections.deque()
ready = threading.Condition()
waits = incident.Clock("waits")


def produce():
    number = 0
    while True:
        time.sleep(0.04)
        with ready:
            number += 1
            items.append(number)
            if number % 10 == 0:
                ready.notify_all()  # cause


def take():
    with ready:
        while not items:
            with waits:
                ready.wait()  # waits
        return items.popleft()


def consume():
    while True:
        sum(range(take() % 1000))


def main():
    for function in (produce, consume, consume, consume):
        threading.Thread(target=function, daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
