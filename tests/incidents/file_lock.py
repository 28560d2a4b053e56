# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Three processes that append to one journal under flock; the one that compacts it keeps the lock while it copies."""
import fcntl
import multiprocessing
import os
import time

from lib import incident

MANIFEST = {
    "title": "a file lock between processes",
    "cause": "file lock",
    "words": [["lock", "flock", "journal"]],
    "clock": "waits",
    "packages": [],
}
waits = incident.Clock("waits")


def append(path, text):
    with open(path + "/journal.lock", "w") as lock:
        with waits:
            fcntl.flock(lock, fcntl.LOCK_EX)  # waits
        with open(path + "/journal", "a") as journal:
            journal.write(text + "\n")


def appender(path):
    while True:
        append(path, "entry")
        time.sleep(0.005)


def compact(path):
    with open(path + "/journal.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        time.sleep(0.2)  # cause
        os.truncate(path + "/journal", 0)


def compactor(path):
    while True:
        compact(path)
        time.sleep(0.02)


def main():
    path = incident.folder()
    open(path + "/journal", "w").close()
    for function in (appender, appender, appender, compactor):
        multiprocessing.Process(target=function, args=(path,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
