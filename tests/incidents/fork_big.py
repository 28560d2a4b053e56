# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service with a large heap forks for each export: the kernel copies its page tables, and then each page that the child changes."""
import os

from lib import incident

MANIFEST = {
    "title": "fork() of a process with a large heap",
    "cause": "fork",
    "words": [["fork", "child", "kernel", "page fault"]],
    "must": "cause",
    "clock": "forks",
    "packages": [],
}
forks = incident.Clock("forks")
SESSIONS = [bytes([n % 251]) * 3000 for n in range(100_000)]


def export(number):
    start = incident.now()
    child = os.fork()  # cause
    if not child:
        os._exit(len(SESSIONS[number % 1000]) % 2)
    forks.add_since(start)
    os.waitpid(child, 0)


def exports():
    number = 0
    while True:
        number += 1
        export(number)


def main():
    incident.in_background(exports)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
