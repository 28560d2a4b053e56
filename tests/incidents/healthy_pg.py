# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask + PostgreSQL under light load: a connection for each thread, and a query by index for each request."""
import threading

import psycopg2
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "nothing: a service with PostgreSQL under light load",
    "cause": None,
    "false": ["another process", r"\block\b", "GIL", "disk", "fsync", "condition", "quota", "throttl", "starv", "round trip", r"waited .*postgres"],
    "packages": ["psycopg2", "flask", "gunicorn"],
    "programs": ["initdb", "setpriv"],
}
app = Flask(__name__)
local = threading.local()


@app.get("/article/<int:port>/<int:number>")
def article(port, number):
    if not hasattr(local, "db"):
        local.db = psycopg2.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres")
        local.db.autocommit = True
    with local.db.cursor() as cursor:
        cursor.execute("SELECT name FROM article WHERE id = %s", (number,))
        return str(cursor.fetchone())


def main():
    dsn = incident.postgres("CREATE TABLE article AS SELECT n AS id, 'name ' || n AS name FROM generate_series(1, 1000) n; "
                            "CREATE INDEX ON article (id); ANALYZE article")
    port = dsn.split("port=")[1].split()[0]
    incident.load(incident.gunicorn(__file__), f"/article/{port}/7", 2, 200)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
