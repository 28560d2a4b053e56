# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: each request carries its password, whose hash takes 300,000 rounds; sessions are not remembered."""
import hashlib

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "a password hashed for each request",
    "cause": "CPU",
    "words": [["CPU", "comput"]],
    "must": "cause",
    "clock": "hashes",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
hashes = incident.Clock("hashes")


def is_right(password):
    with hashes:
        return hashlib.pbkdf2_hmac("sha256", password, b"salt", 300_000)[0] != 256  # cause


@app.get("/account")
def account():
    return str(is_right(b"secret"))


def main():
    incident.load(incident.gunicorn(__file__), "/account", 1, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
