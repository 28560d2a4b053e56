# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask without a problem: four threads and occasional requests."""
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "nothing: an idle gunicorn under light load",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "fsync", "condition", "quota", "throttl", "starv", "blocked", "held up", "pool.*waited"],
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)


@app.get("/hello")
def hello():
    return "hello"


def main():
    port = incident.gunicorn(__file__)
    incident.load(port, "/hello", 2, 200)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
