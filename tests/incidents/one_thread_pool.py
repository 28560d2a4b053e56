# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: invoices are made by a pool of one thread, for which the four threads of the server queue."""
import concurrent.futures
import os
import zlib

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "a pool of one thread behind four",
    "cause": "one worker",
    "words": [["pool", "executor", "condition", "event", "queue", "result"]],
    "must": "cause",
    "clock": "waits",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
printer = concurrent.futures.ThreadPoolExecutor(1)
waits = incident.Clock("waits")
PAGE = os.urandom(10_000) * 80


def make_invoice(number):
    return zlib.compress(PAGE, 9)  # cause


@app.get("/invoice/<int:number>")
def invoice(number):
    with waits:
        return str(len(printer.submit(make_invoice, number).result()))  # waits


def main():
    incident.load(incident.gunicorn(__file__), "/invoice/1", 4, 1)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
