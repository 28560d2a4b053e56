# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For tests that judge what a program computes, also while others use all CPUs."""
import os


def ahead():
    """A preexec_fn: the program and its children are a session that gets the CPUs before what else runs here."""
    os.setsid()
    os.nice(-15)
    # where sessions share the CPUs, nice counts only within one
    if os.path.exists("/proc/self/autogroup"):
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-15")
