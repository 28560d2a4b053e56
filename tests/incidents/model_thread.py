# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: requests wait for the future that one model thread sets, which tokenizes in Python before each product."""
import queue
import threading
from concurrent.futures import Future

import numpy
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "requests wait for one model thread, whose tokenizer is slow",
    "cause": "queue",
    "words": [["condition", "future", "CPU", "result"]],
    "must": "cause",
    "clock": "waits",
    "packages": ["flask", "gunicorn", "numpy"],
}
app = Flask(__name__)
waits = incident.Clock("waits")
jobs = queue.Queue()
weights = numpy.random.rand(64, 64)
TEXT = "the quick brown fox jumps over the lazy dog " * 150


def tokenize(text):
    tokens = []
    for word in text.split():
        for size in range(len(word), 0, -1):
            tokens.append(sum(ord(c) * size for c in word[:size]) % 64)  # cause
    return tokens


def model():
    while True:
        text, future = jobs.get()
        ids = tokenize(text)
        future.set_result(float(weights[ids[:64]].dot(weights).sum()))


@app.get("/predict")
def predict():
    future = Future()
    jobs.put((TEXT, future))
    with waits:
        return str(future.result())  # waits


@app.get("/start")
def begin():
    threading.Thread(target=model, daemon=True).start()
    return "ok"


def main():
    port = incident.gunicorn(__file__, 1, 6)
    incident.get(port, "/start")
    incident.load(port, "/predict", 6, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
