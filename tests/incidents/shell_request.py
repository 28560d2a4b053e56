# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: each request runs a pipeline of commands by os.system."""
import os

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "`os.system` in a request",
    "cause": "child process",
    "words": [["child process", "another process"]],
    "clock": "runs",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
runs = incident.Clock("runs")


def count_words(text):
    with runs:
        return os.system(f"echo {text} | tr ' ' '\\n' | sort | uniq -c > /dev/null")  # cause


@app.get("/words")
def words():
    return str(count_words("one two three two one " * 20))


def main():
    incident.load(incident.gunicorn(__file__, 1, 2), "/words", 2, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
