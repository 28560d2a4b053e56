# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service with a large cache and a "memory watchdog" thread that collects garbage by hand: each collection holds the GIL."""
import gc
import threading
import time

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "a thread that calls `gc.collect()`",
    "cause": "GC",
    "words": [["GC", "GIL", "garbage", "collect"]],
    "must": "cause",
    "clock": "collects",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
cache = {}
collects = incident.Clock("collects")


def trim_memory():
    while True:
        with collects:
            gc.collect()  # cause
        time.sleep(0.1)


@app.get("/item/<int:number>")
def item(number):
    return str(cache[number]["name"])


@app.get("/start")
def begin():
    cache.update({n: {"name": f"item {n}", "tags": [n, [n], {"n": n}]} for n in range(250_000)})
    threading.Thread(target=trim_memory, daemon=True).start()
    return "ok"


def main():
    port = incident.gunicorn(__file__)
    incident.get(port, "/start")
    incident.load(port, "/item/7", 3, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
