# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A search service with a C extension that does not release the GIL while it scans, beside threads that answer requests."""
import time

from lib import incident

MANIFEST = {
    "title": "C extension that holds the GIL",
    "cause": "GIL",
    "words": [["GIL"]],
    "must": "cause",
    "clock": "holds",
    "packages": [],
    "native": [("cause", "textscan_count")],
}
holds = incident.Clock("holds")


def index_document(textscan, text):
    with holds:
        return textscan.count(text, 60)  # cause


def indexer(textscan):
    text = b"the quick brown fox jumps over the lazy dog " * 20_000
    while True:
        index_document(textscan, text)
        time.sleep(0.02)


def answer():
    while True:
        sum(range(500))
        time.sleep(0.002)


def main():
    incident.extension("lib/textscan.c")
    import textscan
    incident.in_background(indexer, textscan)
    for _ in range(3):
        incident.in_background(answer)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
