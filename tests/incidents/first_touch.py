# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A renderer that allocates a canvas of 48 MB for each page: the kernel maps and clears its memory anew each time."""
from lib import incident

MANIFEST = {
    "title": "a fresh buffer of 48 MB for each page",
    "cause": "page faults",
    "words": [["fault", "memory"]],
    "must": "cause",
    "clock": "fills",
    "packages": [],
}
fills = incident.Clock("fills")
BACKGROUND = b"\xff" * (48 << 20)


def render(number):
    with fills:
        canvas = bytearray(BACKGROUND)  # cause
    canvas[number % 1000] = 1
    return sum(canvas[:2000])


def pages():
    number = 0
    while True:
        number += 1
        render(number)


def main():
    incident.in_background(pages)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
