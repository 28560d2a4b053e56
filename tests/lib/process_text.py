# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares the code of a running process with its file, to find probes that were left behind."""

PIECE = 1 << 20  # bytes that are compared at once; libtorch has hundreds of MB


def text_differs(pid, library):
    """The number of bytes in which the library's executable mapping differs from its file."""
    differing = 0
    for line in open(f"/proc/{pid}/maps"):
        words = line.split()
        if len(words) < 6 or library not in words[5] or "x" not in words[1]:
            continue
        start, end = (int(x, 16) for x in words[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb") as mem, open(words[5], "rb") as file:
            for at in range(0, end - start, PIECE):
                size = min(PIECE, end - start - at)
                mem.seek(start + at)
                file.seek(int(words[2], 16) + at)
                memory, disk = mem.read(size), file.read(size)
                differing += sum(a != b for a, b in zip(memory, disk)) if memory[:len(disk)] != disk else 0
    return differing
