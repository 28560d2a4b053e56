# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C++ service: three threads read a routing table under a pthread_rwlock, which a fourth holds for writing while it computes."""
from lib import incident

MANIFEST = {
    "title": "`pthread_rwlock` held by a writer",
    "cause": "lock",
    "words": [["lock"]],
    "must": "cause",
    "clock": "waits",
    "packages": [],
    "native": [("waits", "find_route"), ("cause", "recompute_routes")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/routes.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
