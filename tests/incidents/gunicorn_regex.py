# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: a regular expression that backtracks holds the GIL for long, and the other threads' requests wait."""
import re

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "gunicorn + Flask, a backtracking regex holds the GIL",
    "cause": "GIL",
    "words": [["GIL"]],
    "must": "cause",
    "clock": "holds",
    "share": "sum",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
NAME = re.compile(r"^(\w+\s?)*$")
holds = incident.Clock("holds")


def validate(text):
    with holds:
        return bool(NAME.match(text))  # cause


@app.get("/signup")
def signup():
    return str(validate("an ordinary name of " + "x" * 7 + "!"))


@app.get("/ping")
def ping():
    return "pong"


def main():
    port = incident.gunicorn(__file__)
    incident.load(port, "/signup", 1, 20)
    incident.load(port, "/ping", 3, 2)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
