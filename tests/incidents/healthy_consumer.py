# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Three Redis consumers in BLPOP, with a job now and then: they wait for work, not for Redis."""
import threading
import time

import redis

from lib import incident

MANIFEST = {
    "title": "nothing: consumers that wait for work in BLPOP",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "condition", "quota", "starv", "straggl", "slept", "round trip", r"waited .*redis"],
    "packages": ["redis"],
    "programs": ["redis-server"],
}


def consume(port):
    store = redis.Redis(port=port)
    while True:
        _, job = store.blpop("jobs")
        sum(range(int(job)))


def main():
    port = incident.redis_server()
    for _ in range(3):
        threading.Thread(target=consume, args=(port,), daemon=True).start()

    def trickle():
        store = redis.Redis(port=port)
        while True:
            store.rpush("jobs", 5000)
            time.sleep(0.3)
    incident.in_background(trickle)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
