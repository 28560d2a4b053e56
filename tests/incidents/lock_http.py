# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: a price cache is refreshed over HTTP under its lock, and all requests wait for that lock."""
import threading
import time

import requests
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "`threading.Lock` held over a slow HTTP call",
    "cause": "lock",
    "words": [["lock"]],
    "must": "cause",
    "clock": "waits",
    "packages": ["flask", "gunicorn", "requests"],
}
app = Flask(__name__)
cache_lock = threading.Lock()
prices = {}
waits = incident.Clock("waits")


def refresh(service):
    with cache_lock:
        prices["eur"] = requests.get(f"http://127.0.0.1:{service}/rates", timeout=5).text  # cause


def refresh_forever(service):
    while True:
        refresh(service)
        time.sleep(0.02)


@app.get("/price")
def price():
    with waits:
        cache_lock.acquire()  # waits
    try:
        return prices.get("eur", "?")
    finally:
        cache_lock.release()


@app.get("/start/<int:service>")
def begin(service):
    threading.Thread(target=refresh_forever, args=(service,), daemon=True).start()
    return "ok"


def main():
    service = incident.slow_server(300)
    port = incident.gunicorn(__file__)
    requests.get(f"http://127.0.0.1:{port}/start/{service}", timeout=5)
    incident.load(port, "/price", 3, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
