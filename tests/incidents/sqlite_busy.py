# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two processes write to one SQLite database: an import keeps its transaction open for long, and the service retries until it may write."""
import multiprocessing
import sqlite3
import time

from lib import incident

MANIFEST = {
    "title": "SQLite, a transaction that others wait for",
    "cause": "database lock",
    "words": [["lock", "database"]],
    "clock": "waits",
    "packages": [],
}
waits = incident.Clock("waits")


def save_order(db, number):
    with waits:
        db.execute("INSERT INTO orders VALUES (?)", (number,))  # waits


def service(path):
    db, number = sqlite3.connect(path + "/shop.db", timeout=60, isolation_level=None), 0
    while True:
        number += 1
        save_order(db, number)
        time.sleep(0.005)


def import_batch(db):
    db.execute("BEGIN IMMEDIATE")
    for number in range(30):
        db.execute("INSERT INTO articles VALUES (?)", (number,))
        time.sleep(0.01)  # cause
    db.execute("COMMIT")


def importer(path):
    db = sqlite3.connect(path + "/shop.db", timeout=60, isolation_level=None)
    while True:
        import_batch(db)
        time.sleep(0.05)


def main():
    path = incident.folder("/dev/shm")
    with sqlite3.connect(path + "/shop.db") as db:
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE orders (number); CREATE TABLE articles (number)")
    for function in (importer, service):
        multiprocessing.Process(target=function, args=(path,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
