# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C++ service whose threads wait for a std::future, of which the task computes for long."""
from lib import incident

MANIFEST = {
    "title": "a `std::future` of a slow task",
    "cause": "result",
    "words": [["condition", "result", "thread", "lock"]],
    "must": "cause",
    "clock": None,
    "packages": [],
    "native": [("cause", "quote_route"), ("cause", "find_cheapest")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/quotes.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
