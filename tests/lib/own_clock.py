# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a program's own clock readings say of its waits and its CPU time, as the least and the most that a tracer may find."""
import bisect

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


def points(path):
    """(ns of the clock, ns on a CPU) of each line that a program has written"""
    with open(path) as f:
        return [tuple(map(int, line.split())) for line in f if line.endswith("\n")]


def cpu_shares(readings, seconds, first=0, last=1 << 63):
    """
    The least and the most CPU time in any interval of this length that lies between two times, as a share of it (0 to 1).
    readings: (ns of the clock, ns on a CPU).
    """
    length = int(seconds * 1e9)
    times = [time for time, _ in readings]
    # with the reading before the first time and the one after the last
    part = slice(max(0, bisect.bisect_right(times, first) - 1), bisect.bisect_left(times, last) + 1)
    readings, times = readings[part], times[part]
    least, most = length, 0
    for (begin, cpu), (after, cpu_after) in zip(readings, readings[1:]):
        inner, outer = bisect.bisect_right(times, begin + length) - 1, bisect.bisect_left(times, after + length)
        if outer < len(readings):
            least, most = min(least, max(0, readings[inner][1] - cpu_after)), max(most, readings[outer][1] - cpu)
    return least / length, min(1, most / length)
