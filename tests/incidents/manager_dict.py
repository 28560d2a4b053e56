# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Three processes that count visits in a dict of multiprocessing.Manager: each access is a request to the manager's process."""
import multiprocessing

from lib import incident

MANIFEST = {
    "title": "a `Manager().dict()` as a shared counter",
    "cause": "round trips",
    "words": [["round trip", "round-trip", "manager", "UNIX socket", "socket", "peer"]],
    "clock": "accesses",
    "packages": [],
}
accesses = incident.Clock("accesses")


def count_visit(visits, page):
    with accesses:
        visits[page] = visits.get(page, 0) + 1  # cause


def worker(visits):
    number = 0
    while True:
        number += 1
        sum(range(2000))
        count_visit(visits, f"/page/{number % 20}")


def main():
    visits = multiprocessing.Manager().dict()
    for _ in range(3):
        multiprocessing.Process(target=worker, args=(visits,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
