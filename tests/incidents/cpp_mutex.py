# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C++ service: three threads look up prices under a std::mutex that a fourth holds while it rebuilds the table."""
from lib import incident

MANIFEST = {
    "title": "C++ `std::mutex` held by a rebuild",
    "cause": "lock",
    "words": [["lock", "mutex"]],
    "must": "cause",
    "clock": "waits",
    "packages": [],
    "native": [("waits", "look_up"), ("cause", "rebuild")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/prices.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
