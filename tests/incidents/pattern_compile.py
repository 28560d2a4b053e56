# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A filter that builds a regular expression of each rule for each message; there are more rules than re's cache has entries."""
import re

from lib import incident

MANIFEST = {
    "title": "regular expressions compiled for each message",
    "cause": "CPU",
    "words": [["CPU", "comput"]],
    "clock": "checks",
    "packages": [],
}
checks = incident.Clock("checks")
RULES = [f"(spam|offer){number}[a-f]+(win|prize)*" for number in range(800)]


def is_refused(message):
    with checks:
        return any(re.search(rule, message) for rule in RULES)  # cause


def work():
    while True:
        is_refused("a message without anything that a rule refuses")


def main():
    incident.in_background(work)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
