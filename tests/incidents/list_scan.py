# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A deduplication that looks each record up in a list of those it has seen, so that its cost grows with their number."""
from lib import incident

MANIFEST = {
    "title": "`in` of a long list",
    "cause": "CPU",
    "words": [["CPU", "comput"]],
    "must": "cause",
    "clock": "lookups",
    "packages": [],
}
lookups = incident.Clock("lookups")


def is_new(record, seen):
    with lookups:
        return record not in seen  # cause


def deduplicate():
    while True:
        seen = []
        for number in range(20_000):
            record = f"record {number % 6000}"
            if is_new(record, seen):
                seen.append(record)


def main():
    incident.in_background(deduplicate)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
