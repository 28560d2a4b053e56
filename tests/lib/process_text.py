# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares the code of a running process with its file, to find probes that were left behind."""
import proc_files
from waiting import wait_for

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


def text_stays_different(pid, library, own=None, seconds=60):
    """
    The number of bytes in which the library's mapping differs from its file after a recording has ended. Another recording probes the file
    in all processes that map it: while there is one, this waits for its end. own is the pid of the ended recording's attacher, which must
    have removed its probes: this does not wait for it.
    """
    found = []

    def others():
        return [p for p in proc_files.pids() if p != own and (proc_files.status(p) or {}).get("Name") == "sonde-attacher"]

    def is_decided():
        # a recording may begin or end while the text is compared
        before = others()
        found[:] = [text_differs(pid, library)]
        return not found[0] or not before + others()
    wait_for(is_decided, seconds, 0.2)
    return found[0]
