# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that reads its whole list of rules, 16 MB, from the page cache for each request."""
from lib import incident

MANIFEST = {
    "title": "a file of 16 MB read for each request",
    "cause": "read",
    "words": [["read", "kernel", "page fault"]],
    "must": "cause",
    "clock": "reads",
    "packages": [],
}
reads = incident.Clock("reads")


def rule_for(path, number):
    with open(path, "rb") as rules, reads:
        text = rules.read()  # cause
    return text[number * 16:number * 16 + 16]


def requests(path):
    number = 0
    while True:
        number = (number + 1) % 10_000
        rule_for(path, number)


def main():
    path = incident.folder(incident.disk()) + "/rules"
    with open(path, "wb") as rules:
        rules.write(b"allow 10.0.0.0/8" * (1 << 20))
    incident.in_background(requests, path)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
