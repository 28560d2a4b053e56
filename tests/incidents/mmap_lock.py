# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A C++ program whose threads map and unmap buffers of 8 MB: all wait for the one lock of the address space."""
from lib import incident

MANIFEST = {
    "title": "threads that map and unmap large buffers",
    "cause": "address space",
    "words": [["kernel", "page fault", "address space", "mmap", "munmap"]],
    "must": "cause",
    "clock": None,
    "packages": [],
    "native": [("cause", "render_tile")],
}


def main():
    incident.clocks_folder()
    incident.start(incident.build("lib/tiles.cpp"))
    incident.serve(__file__)


if __name__ == "__main__":
    main()
