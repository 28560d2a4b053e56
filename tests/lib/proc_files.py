# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads /proc/PID of other processes. They run meanwhile: a thread may end, or a descriptor be closed, between a listing and the
reading of its file, which is left out then."""
import contextlib
import os


def read(path):
    """The text of the file; None if its process, thread or descriptor is gone."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return None


def entries(path):
    """The names in a folder; none if its process is gone"""
    with contextlib.suppress(OSError):
        return os.listdir(path)
    return []


def pids():
    return [int(name) for name in entries("/proc") if name.isdigit()]


def threads(pid):
    return sorted(map(int, entries(f"/proc/{pid}/task")))


def status(pid, tid=None):
    """{key: value} of the status of a process or a thread; None if it is gone"""
    text = read(f"/proc/{pid}/task/{tid}/status" if tid else f"/proc/{pid}/status")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line) if text else None


def children(pid):
    return [other for other in pids() if (status(other) or {}).get("PPid") == str(pid)]


def child_named(pid, name):
    """The pid of a process's child with this name, or None"""
    return next((child for child in children(pid) if (status(child) or {}).get("Name") == name), None)


def cpu_seconds(pid):
    """The CPU time of a process's threads"""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def runnable_ns(pid):
    """The time that a process's threads have waited for a CPU"""
    return sum(int((read(f"/proc/{pid}/task/{tid}/schedstat") or "0 0 0").split()[1]) for tid in threads(pid))


def open_files(pid):
    """{descriptor: what it refers to}"""
    found = {}
    for fd in entries(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
    return found


def fdinfo(pid):
    """The lines of the fdinfo of all descriptors of a process"""
    return [line for fd in entries(f"/proc/{pid}/fdinfo") for line in (read(f"/proc/{pid}/fdinfo/{fd}") or "").splitlines()]
