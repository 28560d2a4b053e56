# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PostgreSQL: all orders increment one row, and a transaction keeps it locked while another service makes the receipt."""
import threading
import time

import psycopg2

from lib import incident

MANIFEST = {
    "title": "PostgreSQL hot row, psycopg2",
    "cause": "row lock",
    "words": [["postgres", "port", "peer", "row", "transaction"]],
    "clock": "waits",
    "packages": ["psycopg2"],
    "programs": ["initdb", "setpriv"],
}
waits = incident.Clock("waits")


def make_receipt(number):
    time.sleep(0.06)  # cause
    return f"receipt {number}"


def order(db):
    with db, db.cursor() as cursor:
        with waits:
            cursor.execute("UPDATE counter SET value = value + 1 WHERE name = 'orders' RETURNING value")  # waits
        make_receipt(cursor.fetchone()[0])


def shop(dsn):
    db = psycopg2.connect(dsn)
    while True:
        order(db)


def main():
    dsn = incident.postgres("CREATE TABLE counter (name text PRIMARY KEY, value bigint); INSERT INTO counter VALUES ('orders', 0)")
    for _ in range(5):
        threading.Thread(target=shop, args=(dsn,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
