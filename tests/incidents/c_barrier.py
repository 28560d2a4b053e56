# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A solver of four threads that meet at a barrier: one has a denser part, and the others wait for it at each step."""
from lib import incident

MANIFEST = {
    "title": "barrier that waits for one slow thread",
    "cause": "straggler",
    "words": [["barrier", "lock", "condition", "event", "CPU", "comput"]],
    "must": "cause",
    "clock": "waits",
    "packages": [],
    "native": [("cause", "relax_dense")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/solver.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
