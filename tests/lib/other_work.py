# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures the CPU time that the rest of the machine took. A test that compares times can show by it that a recording was disturbed."""
import os
import time

import tap

DISTURBED = 0.1  # of one CPU
TRIES = 4
SLOW = int(os.environ.get("SLOW", 1))


class OtherWork:
    """The CPU time since its creation that this test and its children, once they have ended, did not use, and that a hypervisor stole"""

    def __init__(self):
        self.began = self._read()

    @staticmethod
    def _read():
        with open("/proc/stat") as f:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
        used = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), used - sum(os.times()[:4])

    def share(self):
        """As a share of one CPU"""
        now = self._read()
        return (now[1] - self.began[1]) / (now[0] - self.began[0])


def again_if_disturbed(name, record, faults):
    """
    The result of record(). It is called again, up to TRIES times in all, if faults(result) is true and other work took more than DISTURBED
    while it ran. Under emulation it is called once.
    """
    for tries_left in range(TRIES - 1, -1, -1):
        work = OtherWork()
        result = record()
        share = work.share()
        found = faults(result)
        if not found or share < DISTURBED or SLOW > 1 or not tries_left:
            return result
        tap.note("%s: other work took %.0f%% of a CPU; recording again: %s" % (name, 100 * share, found))
