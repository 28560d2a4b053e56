# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Polls for a condition instead of sleeping for a fixed time, so that a slow machine passes and a fast one loses no time."""
import time


def wait_for(condition, seconds=60, pause=0.02):
    """Polls the condition every `pause` seconds. Returns True once it holds, False after `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(pause)
    return True


def state(pid, tid=None):
    """The state letter (R, S, D, T, t, Z) of a thread, by default of the main thread; None if there is no such thread."""
    try:
        with open(f"/proc/{pid}/task/{tid or pid}/stat") as f:
            return f.read().rsplit(") ", 1)[1][0]
    except OSError:
        return None


def wait_state(pid, letter, seconds=60):
    return wait_for(lambda: state(pid) == letter, seconds)
