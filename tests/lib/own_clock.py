# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a program's own clock readings say of its waits for a lock, as the least and the most that a tracer may find."""

THRESHOLD_NS = 1_000_000  # shorter waits need not have a stack, by which they are waits for a lock


def clipped(begin, end, first, last):
    return max(0, min(end, last) - max(begin, first))


def lock_waits(waits, holds, first=0, last=1 << 63):
    """
    The least and most ns that a thread waited for a lock from `first` to `last`. waits: (begin, end, ns on a CPU, ns without one although
    runnable) of each call that took the lock. holds: (begin, end) within each time for which another thread had it. The call lasts longer
    than the wait; and the wait lasts at least while the other one has the lock, except where the thread runs or waits for a CPU.
    """
    least = most = 0
    for begin, end, ran, delayed in waits:
        begin, end = max(begin, first), min(end, last)
        held = sum(clipped(begin, end, *hold) for hold in holds)
        most += max(0, end - begin)
        least += held - ran - delayed if held - ran - delayed > THRESHOLD_NS else 0
    return least, most
