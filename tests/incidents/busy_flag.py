# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service whose start waits for a flag in an empty loop: it holds the GIL, and the threads that answer requests wait."""
import time

from lib import incident

MANIFEST = {
    "title": "a thread that waits for a flag in an empty loop",
    "cause": "GIL",
    "words": [["GIL", "CPU", "comput"]],
    "must": "cause",
    "clock": "spins",
    "packages": [],
}
spins = incident.Clock("spins")
state = {"generation": 0}


def await_reload(generation):
    with spins:
        while state["generation"] == generation:  # cause
            pass


def watcher():
    while True:
        await_reload(state["generation"])


def reloader():
    while True:
        time.sleep(0.4)
        state["generation"] += 1


def answer():
    while True:
        sum(range(20_000))
        time.sleep(0.002)


def main():
    for function in (watcher, reloader, answer, answer, answer):
        incident.in_background(function)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
