# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One recording at a time on a machine: two that are made side by side spoil each other's counts and times."""
import contextlib
import fcntl
import os
import sys

PATH = "/run/lock/sonde-live.lock"
HELD = "SONDE_LIVE_LOCK"  # set in the environment of what the holder starts


@contextlib.contextmanager
def live_lock():
    """Waits until no other run of live tests, benchmarks or incidents on this machine records, and holds the lock meanwhile."""
    if HELD in os.environ or not os.path.isdir(os.path.dirname(PATH)):
        yield
        return
    fd = os.open(PATH, os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Waits for another run that records ({PATH})", file=sys.stderr, flush=True)
            fcntl.flock(fd, fcntl.LOCK_EX)
        os.environ[HELD] = "1"
        yield
    finally:
        os.environ.pop(HELD, None)
        os.close(fd)
