# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: a handler runs a program for each request and waits for it."""
import os
import subprocess

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "`subprocess.run` in a request",
    "cause": "child process",
    "words": [["child", "process", "subprocess", "xz"]],
    "clock": "waits",
    "packages": ["flask", "gunicorn"],
    "programs": ["xz"],
}
app = Flask(__name__)
DATA = os.urandom(200_000)
waits = incident.Clock("waits")


def compress(data):
    with waits:
        return subprocess.run(["xz", "-9e", "-c"], input=data, capture_output=True, check=True).stdout  # cause


@app.get("/archive")
def archive():
    return str(len(compress(DATA)))


def main():
    incident.load(incident.gunicorn(__file__, 1, 2), "/archive", 1, 30)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
