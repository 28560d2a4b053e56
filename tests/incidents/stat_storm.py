# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: each request searches for templates by walking a tree of 1,200 files, mostly in the kernel."""
import os

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "a walk through 1,200 files for each request",
    "cause": "system calls",
    "words": [["system call", "syscall", "kernel", "stat", "CPU", "comput"]],
    "must": "cause",
    "clock": "walks",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
walks = incident.Clock("walks")


def newest_template(top):
    newest = 0
    for number in range(1200):
        newest = max(newest, os.stat(f"{top}/{number // 100}/{number}.html").st_mtime)  # cause
    return newest


@app.get("/page/<path:top>")
def page(top):
    with walks:
        return str(newest_template("/" + top))


def main():
    top = incident.folder()
    for number in range(1200):
        os.makedirs(f"{top}/{number // 100}", exist_ok=True)
        open(f"{top}/{number // 100}/{number}.html", "w").close()
    incident.load(incident.gunicorn(__file__, 1, 2), f"/page{top}", 2, 1)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
