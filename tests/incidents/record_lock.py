# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two processes that edit one mailbox under a POSIX record lock (lockf); the one that cleans it up holds the lock while it computes."""
import fcntl
import multiprocessing
import os
import time

from lib import incident

MANIFEST = {
    "title": "a POSIX record lock between processes",
    "cause": "file lock",
    "words": [["lock"]],
    "clock": "waits",
    "packages": [],
}
waits = incident.Clock("waits")


def deliver(path):
    with open(path, "r+") as mailbox:
        with waits:
            fcntl.lockf(mailbox, fcntl.LOCK_EX)  # waits
        mailbox.write("message\n")


def deliver_forever(path):
    while True:
        deliver(path)
        time.sleep(0.005)


def clean_up(path):
    with open(path, "r+") as mailbox:
        fcntl.lockf(mailbox, fcntl.LOCK_EX)
        sum(i * i for i in range(2_000_000))  # cause


def clean_forever(path):
    while True:
        clean_up(path)
        time.sleep(0.02)


def main():
    path = os.path.join(incident.folder(), "mailbox")
    open(path, "w").close()
    for function in (deliver_forever, clean_forever):
        multiprocessing.Process(target=function, args=(path,), daemon=True).start()
    incident.serve(__file__)


if __name__ == "__main__":
    main()
