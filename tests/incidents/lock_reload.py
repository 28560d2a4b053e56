# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server of threads: reload() sleeps between two reads of its configuration while it holds the lock that handle() needs."""
import threading
import time

from lib import incident

MANIFEST = {
    "title": "lock convoy between `reload()` and `handle()`",
    "cause": "lock",
    "words": [["lock"]],
    "must": "cause",
    "clock": "waits",
    "packages": [],
}
lock = threading.Lock()
config = {"limit": 10}
waits = incident.Clock("waits")


def reload():
    with lock:
        config["limit"] += 1
        time.sleep(0.25)  # cause
        config["limit"] -= 1


def reloader():
    while True:
        reload()
        time.sleep(0.005)


def handle():
    with waits:
        lock.acquire()  # waits
    try:
        return config["limit"]
    finally:
        lock.release()


def worker():
    while True:
        handle()
        time.sleep(0.01)


def main():
    for function in (reloader, worker, worker, worker, worker):
        threading.Thread(target=function, daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
