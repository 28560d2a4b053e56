# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Differences of the kernel's clocks"""
import time


def ahead_of_monotonic(clock):
    """By how many ns a clock is ahead of CLOCK_MONOTONIC. It is read between two readings of the latter; of many
    tries the narrowest counts, as the test may be interrupted between two readings."""
    tries = [(time.monotonic_ns(), time.clock_gettime_ns(clock), time.monotonic_ns()) for _ in range(1000)]
    before, read, after = min(tries, key=lambda t: t[2] - t[0])
    return read - (before + after) // 2
