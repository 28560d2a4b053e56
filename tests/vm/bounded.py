# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Limits the time of a step of tests/vm/steps.py, and reports what each thread waits in if a step does not end."""
import faulthandler
import os
import signal
import sys
import tempfile
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
PF_KTHREAD = 0x200000  # include/linux/sched.h


class Both:
    """An output file that is copied to $PROGRESS, the machine's second serial port"""

    def __init__(self, file, port):
        self.file, self.port = file, port

    def write(self, text):
        self.file.write(text)
        self.port.write(text)

    def flush(self):
        self.file.flush()
        self.port.flush()


def show_progress():
    if "PROGRESS" in os.environ:
        sys.stdout = Both(sys.stdout, open(os.environ["PROGRESS"], "w", errors="replace"))


def read(*path):
    try:
        with open(os.path.join(*map(str, path)), errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def thread(pid, tid):
    """(state, line) of a thread."""
    at = f"/proc/{pid}/task/{tid}"
    stat = read(at, "stat").rpartition(")")[2].split()
    if not stat:
        return "", ""
    frames = [line.split()[-1].split("+")[0] for line in read(at, "stack").splitlines()]
    cpu = (int(stat[11]) + int(stat[12])) / TICKS
    return stat[0], (f"  {tid} {read(at, 'comm').strip()} {stat[0]}, {cpu:.1f} s of CPU, system call {read(at, 'syscall').split(' ')[0].strip()}: "
                     + " ".join(frames))


def processes():
    """Lines on every thread of every process, and on kernel threads that are blocked."""
    lines = []
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))):
        command = read("/proc", pid, "cmdline").replace("\0", " ").replace("\n", " ").strip()
        parent = read("/proc", pid, "stat").rpartition(")")[2].split()[1:2]
        threads = [thread(pid, t) for t in sorted(map(int, os.listdir(f"/proc/{pid}/task")))] if os.path.exists(f"/proc/{pid}/task") else []
        if parent and (command or any(state == "D" for state, _ in threads)):
            lines += [f"{pid} of {parent[0]}: {command[:200]}", *[line for _, line in threads]]
    return lines


class Bound:
    """
    Ends the step in seconds. Its report has the output so far of the command that runs, of which run() of steps.py informs
    it, and what describe() returns: functions that add lines.
    """

    def __init__(self, seconds):
        self.seconds, self.command, self.output, self.describe = seconds, None, None, []
        self.stack = tempfile.TemporaryFile("w+", dir="/dev/shm")
        self.timer = threading.Timer(seconds, self.expired)
        self.timer.daemon = True
        self.timer.start()

    def report(self):
        lines = processes()
        for describe in self.describe:
            lines += describe()
        if self.command:
            lines += [f"{self.command}, which has printed:", *self.output().splitlines()[-20:]]
        faulthandler.dump_traceback(self.stack)
        self.stack.seek(0)
        return lines + self.stack.read().splitlines()

    def expired(self):
        try:
            lines = self.report()
        except Exception as e:  # the result must be printed in any case
            lines = [f"no report: {e!r}"]
        print(f"not ok - it ends within {self.seconds:.0f} s", *["# " + line for line in lines], sep="\n", flush=True)
        left = end_all()
        if left:
            print("# cannot be killed:", *["# " + line for line in left], sep="\n", flush=True)
        os._exit(1)


def end_all():
    """Kills all processes except this one and the machine's first. Returns lines about those that remain. Does nothing outside a machine."""
    if "tests/vm/guest.sh" not in read("/proc/1/cmdline"):
        return []
    until = time.monotonic() + 10
    while others() and time.monotonic() < until:
        os.kill(-1, signal.SIGKILL)
        time.sleep(0.2)
    return [line for pid in others() for _, line in [thread(pid, pid)]]


def others():
    """Processes, without zombies, kernel threads, the first one and this one."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        stat = read("/proc", pid, "stat").rpartition(")")[2].split()
        if pid not in (1, os.getpid()) and stat and stat[0] not in "ZX" and not int(stat[6]) & PF_KTHREAD:
            found.append(pid)
    return found
