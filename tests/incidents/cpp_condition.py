# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C++ service: four threads wait for jobs at a condition variable, and the one thread that assembles jobs computes for long."""
from lib import incident

MANIFEST = {
    "title": "C++ condition variable, a producer that computes",
    "cause": "condition",
    "words": [["condition", "queue", "event", "CPU", "comput"]],
    "must": "cause",
    "clock": "waits",
    "packages": [],
    "native": [("waits", "take"), ("cause", "assemble_job")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/jobs.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
