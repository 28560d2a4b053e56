# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service whose threads spin for a spin lock that a report keeps while it sleeps."""
from lib import incident

MANIFEST = {
    "title": "spin lock held while its holder sleeps",
    "cause": "spinning",
    "words": [["spin", "lock", "CPU", "comput"]],
    "must": "cause",
    "clock": "spins",
    "packages": [],
    "native": [("cause", "count_hit"), ("cause", "write_report")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/hits.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
