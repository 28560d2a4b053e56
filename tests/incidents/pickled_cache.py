# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: each request loads a large pickled object from a file to read one entry of it."""
import os
import pickle

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "`pickle.load` of a large object for each request",
    "cause": "CPU",
    "words": [["CPU", "comput", "GIL"]],
    "must": "cause",
    "clock": "loads",
    "share": "sum",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
loads = incident.Clock("loads")
PATH = os.path.join(incident.disk(), "catalogue.pickle")


def load_catalogue():
    with loads, open(PATH, "rb") as f:
        return pickle.load(f)  # cause


@app.get("/price/<int:number>")
def price(number):
    return str(load_catalogue()[number]["price"])


def main():
    with open(PATH, "wb") as f:
        pickle.dump({n: {"name": f"article {n}", "price": n / 7, "tags": [f"tag{n % 50}", "new"]} for n in range(40_000)}, f)
    incident.load(incident.gunicorn(__file__, 1, 2), "/price/7", 1, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
