# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests run side by side, and several may need a package that none has installed yet: the first one installs it, the others wait."""
import contextlib
import fcntl


@contextlib.contextmanager
def locked(path):
    """Holds the lock PATH.lock, which is created if it is missing."""
    with open(path + ".lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
