# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask + PostgreSQL: a customer is looked up by a column without an index, so that each lookup reads the whole table."""
import threading

import psycopg2
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "PostgreSQL, missing index",
    "cause": "a slow query",
    "words": [["postgres", "port", "peer", "query"]],
    "clock": "waits",
    "packages": ["psycopg2", "flask", "gunicorn"],
    "programs": ["initdb", "setpriv"],
}
app = Flask(__name__)
waits = incident.Clock("waits")
local = threading.local()


def connection(port):
    if not hasattr(local, "db"):
        local.db = psycopg2.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres")
        local.db.autocommit = True
    return local.db


def find_customer(db, email):
    with db.cursor() as cursor:
        with waits:
            cursor.execute("SELECT id, name FROM customer WHERE email = %s", (email,))  # cause
        return cursor.fetchone()


@app.get("/customer/<int:port>/<int:number>")
def customer(port, number):
    return str(find_customer(connection(port), f"user{number}@example.org"))


def main():
    dsn = incident.postgres("CREATE TABLE customer AS SELECT n AS id, 'name ' || n AS name, 'user' || n || '@example.org' AS email "
                            "FROM generate_series(1, 400000) n; ANALYZE customer")
    port = dsn.split("port=")[1].split()[0]
    incident.load(incident.gunicorn(__file__), f"/customer/{port}/399999", 2, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
