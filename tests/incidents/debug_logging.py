# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A worker that formats its whole basket for a debug message, which the log level then drops."""
import logging

from lib import incident

MANIFEST = {
    "title": "a debug message formatted and dropped",
    "cause": "CPU",
    "words": [["CPU", "comput"]],
    "must": "cause",
    "clock": "formats",
    "packages": [],
}
log = logging.getLogger("baskets")
formats = incident.Clock("formats")
BASKET = {f"article{n}": {"price": n / 7, "count": n % 5, "tags": ["new", "red"]} for n in range(2000)}


def reprice(basket):
    with formats:
        log.debug(f"repricing {basket}")  # cause
    return sum(item["price"] * item["count"] for item in basket.values())


def work():
    while True:
        reprice(BASKET)


def main():
    logging.basicConfig(level=logging.INFO)
    incident.in_background(work)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
