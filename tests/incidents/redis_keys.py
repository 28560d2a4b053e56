# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask + Redis: an overview counts sessions by KEYS, for which Redis walks through all of its 300,000 keys."""
import redis
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "Redis, KEYS over 300,000 keys",
    "cause": "a slow command",
    "words": [["redis"]],
    "clock": "waits",
    "packages": ["redis", "flask", "gunicorn"],
    "programs": ["redis-server"],
}
app = Flask(__name__)
waits = incident.Clock("waits")
clients = {}


def count_sessions(store):
    with waits:
        found = store.keys("session:9999*")  # cause
    return len(found)


@app.get("/overview/<int:port>")
def overview(port):
    return str(count_sessions(clients.setdefault(port, redis.Redis(port=port))))


def main():
    port = incident.redis_server()
    store = redis.Redis(port=port)
    for first in range(0, 300_000, 10_000):
        store.mset({f"session:{number}": 1 for number in range(first, first + 10_000)})
    incident.load(incident.gunicorn(__file__, 1, 2), f"/overview/{port}", 2, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
