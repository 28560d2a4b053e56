# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask + PostgreSQL: a list of orders is one query, and the lines of each order are another one."""
import threading

import psycopg2
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "PostgreSQL, a query for each of 300 orders",
    "cause": "round trips",
    "words": [["round trip", "round-trip", "postgres", "peer", "port", "network"]],
    "clock": "asks",
    "packages": ["psycopg2", "flask", "gunicorn"],
    "programs": ["initdb", "setpriv"],
}
app = Flask(__name__)
asks = incident.Clock("asks")
local = threading.local()


def order_totals(db, customer):
    totals = {}
    with db.cursor() as cursor:
        cursor.execute("SELECT id FROM orders WHERE customer = %s", (customer,))
        for (order,) in cursor.fetchall():
            with asks:
                cursor.execute("SELECT sum(price) FROM lines WHERE order_id = %s", (order,))  # cause
            totals[order] = cursor.fetchone()[0]
    return totals


@app.get("/orders/<int:port>/<int:customer>")
def orders(port, customer):
    if not hasattr(local, "db"):
        local.db = psycopg2.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres")
        local.db.autocommit = True
    return str(len(order_totals(local.db, customer)))


def main():
    dsn = incident.postgres("CREATE TABLE orders AS SELECT n AS id, n / 300 AS customer FROM generate_series(1, 30000) n; "
                            "CREATE TABLE lines AS SELECT n / 3 AS order_id, 5 AS price FROM generate_series(1, 90000) n; "
                            "CREATE INDEX ON orders (customer); CREATE INDEX ON lines (order_id); ANALYZE")
    port = dsn.split("port=")[1].split()[0]
    incident.load(incident.gunicorn(__file__, 1, 2), f"/orders/{port}/50", 1, 10)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
