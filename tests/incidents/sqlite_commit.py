# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An importer that commits each row separately: SQLite syncs each to the disk before the next."""
import os
import sqlite3

from lib import incident

MANIFEST = {
    "title": "sqlite, a commit a row",
    "cause": "disk",
    "words": [["disk", "fsync", "fdatasync", "sync"]],
    "clock": "commits",
    "packages": [],
}
commits = incident.Clock("commits")


def rows():
    number = 0
    while True:
        number += 1
        yield number, f"customer {number}", number % 100


def import_rows(db):
    for row in rows():
        db.execute("INSERT INTO customer VALUES (?, ?, ?)", row)
        with commits:
            db.commit()  # cause


def main():
    # /tmp may be in memory, where a sync does not wait
    db = sqlite3.connect(os.path.join(incident.folder(incident.disk()), "shop.db"), check_same_thread=False)
    db.execute("CREATE TABLE customer (id INTEGER, name TEXT, city INTEGER)")
    incident.in_background(import_rows, db)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
