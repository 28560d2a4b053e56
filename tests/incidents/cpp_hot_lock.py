# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C++ service whose six threads count each event under one mutex, and format the event's line while they hold it."""
from lib import incident

MANIFEST = {
    "title": "a hot `std::mutex` around a short piece of work",
    "cause": "lock",
    "words": [["lock"]],
    "must": "cause",
    "clock": "waits",
    "packages": [],
    "native": [("waits", "record_event"), ("cause", "record_event"), ("cause", "format_line")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/events.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
