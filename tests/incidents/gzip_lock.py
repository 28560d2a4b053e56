# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: answers are compressed at level 9 under a lock, as the compressor is shared."""
import gzip
import threading

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "responses compressed under one lock",
    "cause": "lock",
    "words": [["lock"]],
    "must": "cause",
    "clock": "waits",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
gzip_lock = threading.Lock()
waits = incident.Clock("waits")
ROWS = "".join(f'{{"id": {n}, "price": {n * 7919 % 10007}}},' for n in range(20_000)).encode()


def pack(rows):
    with waits:
        gzip_lock.acquire()  # waits
    try:
        return gzip.compress(rows, 9)  # cause
    finally:
        gzip_lock.release()


@app.get("/rows")
def rows():
    return str(len(pack(ROWS)))


def main():
    incident.load(incident.gunicorn(__file__), "/rows", 4, 1)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
