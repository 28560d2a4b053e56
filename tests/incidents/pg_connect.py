# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask + PostgreSQL: each request opens its own connection, for which PostgreSQL starts a process."""
import psycopg2
from flask import Flask

from lib import incident

MANIFEST = {
    "title": "PostgreSQL, a connection for each request",
    "cause": "connecting",
    "words": [["connect"]],
    "clock": "logins",
    "packages": ["psycopg2", "flask", "gunicorn"],
    "programs": ["initdb", "setpriv"],
}
app = Flask(__name__)
logins = incident.Clock("logins")


def find_user(port, number):
    with logins:
        db = psycopg2.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres")  # cause
    with db.cursor() as cursor:
        cursor.execute("SELECT name FROM users WHERE id = %s", (number,))
        name = cursor.fetchone()
    db.close()
    return name


@app.get("/user/<int:port>/<int:number>")
def user(port, number):
    return str(find_user(port, number))


def main():
    dsn = incident.postgres("CREATE TABLE users AS SELECT n AS id, 'name ' || n AS name FROM generate_series(1, 1000) n; "
                            "CREATE INDEX ON users (id); ANALYZE users")
    port = dsn.split("port=")[1].split()[0]
    incident.load(incident.gunicorn(__file__), f"/user/{port}/7", 2, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
