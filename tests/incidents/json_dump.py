# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: each request writes the whole catalogue as JSON to answer for one product."""
import json

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "a large object as JSON for each request",
    "cause": "CPU",
    "words": [["CPU", "comput", "GIL"]],
    "must": "cause",
    "clock": "dumps",
    "share": "sum",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
dumps = incident.Clock("dumps")
CATALOGUE = [{"id": n, "name": f"product {n}", "prices": [n * 0.5, n * 0.7], "tags": ["new", "sale"]} for n in range(8000)]


def snapshot():
    with dumps:
        return json.dumps(CATALOGUE)  # cause


@app.get("/product/<int:number>")
def product(number):
    return snapshot()[number:number + 80]


def main():
    incident.load(incident.gunicorn(__file__, 1, 2), "/product/7", 1, 20)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
