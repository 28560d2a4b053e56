# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A page is assembled from 400 keys, each requested separately: many tiny round trips to Redis."""
import redis
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "Redis, a round trip for each of 400 keys",
    "cause": "round trips",
    "words": [["round trip", "round-trip", "small", "redis", "6379", "peer", "requests", "network", "port"]],
    "clock": "asks",
    "packages": ["redis", "flask", "gunicorn"],
    "programs": ["redis-server"],
}
app = Flask(__name__)
asks = incident.Clock("asks")
clients = {}


def load_basket(store, user):
    total = 0
    for number in range(400):
        with asks:
            price = store.get(f"user:{user}:item:{number}")  # cause
        total += int(price or 0)
    return total


@app.get("/basket/<int:port>/<int:user>")
def basket(port, user):
    store = clients.setdefault(port, redis.Redis(port=port))
    return str(load_basket(store, user))


def main():
    port = incident.redis_server()
    store = redis.Redis(port=port)
    store.mset({f"user:1:item:{n}": n for n in range(400)})
    incident.load(incident.gunicorn(__file__, 1, 2), f"/basket/{port}/1", 1, 10)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
