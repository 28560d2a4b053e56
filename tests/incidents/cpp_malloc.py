# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C++ service whose eight threads build texts in one arena of malloc, as MALLOC_ARENA_MAX=1 in its unit asks for."""
import os

from lib import incident

MANIFEST = {
    "title": "eight threads in one arena of malloc",
    "cause": "lock",
    "words": [["lock"]],
    "must": "cause",
    "clock": None,
    "packages": [],
    "native": [("cause", "parse_row")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/rows.cpp"), env={**os.environ, "MALLOC_ARENA_MAX": "1"})
    incident.serve(__file__)


if __name__ == "__main__":
    main()
