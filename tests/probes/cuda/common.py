# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of family cuda: programs, recordings, expected calls."""
import collections
import contextlib
import glob
import os
import select
import shutil
import signal
import subprocess
import tempfile

ROOT = os.environ.get("ROOT", os.path.abspath(os.path.join(os.path.dirname(__file__), "../../..")))
BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "test", "sonde"))
CUDA = os.environ.get("CUDA", os.path.join(BUILD, "cuda"))
HERE = os.path.join(BUILD, "tests", "probes", "cuda")
FAKE = os.path.join(BUILD, "tests", "fakes", "libcudart.so")

from sonde_trace import Trace
from tap import ok
from waiting import wait_for

OPEN, RETURN_NOT_SEEN, NO_DURATION = 1, 2, 4  # bpf/core/event.h
RING_FULL, DEPTH, RECURSION, RETURN, BLIND = 1, 3, 4, 5, 8  # bpf/core/meta.h
ALWAYS = {"cudaGetLastError"}  # only with --cuda=all
# How many times slower than a usual machine this one may be, for time limits
SLOW = int(os.environ.get("SLOW", 1))


def directory():
    return tempfile.mkdtemp(prefix="sonde-cuda-")


def versions(program):
    """[(version, path)] of a program, which is built for each CUDA version that could be downloaded"""
    found = [(v, os.path.join(HERE, f"{program}-{v}")) for v in ("12", "13")]
    return [(v, p) for v, p in found if os.path.exists(p)]


def fake_library(tmp, version="99"):
    """Copies the fake libcudart to a file name by which sonde recognizes it."""
    path = os.path.join(tmp, f"libcudart.so.{version}")
    shutil.copy(FAKE, path)
    return path


def read_truth(path, all_calls):
    """{(pid, tid): [(function, ret, before, after)]}, in the order of the calls"""
    threads = collections.defaultdict(list)
    for line in open(path):
        pid, tid, function, ret, before, after = line.split()
        if all_calls or function not in ALWAYS:
            threads[int(pid), int(tid)].append((function, int(ret), int(before), int(after)))
    for calls in threads.values():
        calls.sort(key=lambda c: c[2])
    return threads


def compare(name, want, got, durations=lambda pid: True):
    """durations(pid): True if calls of that process must have a duration"""
    ok(set(want) == set(got), f"{name}: calls of exactly {len(want)} threads", sorted(want), sorted(got))
    total = sum(map(len, want.values()))
    wrong, outside, marks = [], [], []
    for thread, calls in want.items():
        seen = got.get(thread, [])
        timed = durations(thread[0])
        expect = [(c[0], c[1] if timed else 0) for c in calls]
        have = [(c["function"], c["ret"]) for c in seen]
        if expect != have:
            wrong.append(f"{thread}: {collections.Counter(have)}, not {collections.Counter(expect)}")
            continue
        for c, e in zip(calls, seen):
            if not c[2] <= e["start"] <= e["time"] <= c[3]:
                outside.append((thread, c, e["start"], e["time"]))
            if (e["flags"] == NO_DURATION, e["time"] > e["start"]) != (not timed, timed) or e["flags"] & ~NO_DURATION:
                marks.append((thread, c, e["flags"], e["start"], e["time"]))
    found = sum(len(calls) for thread, calls in got.items() if thread in want)
    ok(not wrong, f"{name}: {total} calls by function, thread and return code", *(["counted %d of %d" % (found, total)] if wrong else []), *wrong)
    ok(not outside, f"{name}: times within those of the program", *outside[:5])
    ok(not marks, f"{name}: " + ("durations" if durations(0) else "durations only where they can be"), *marks[:5])


class Program:
    """A test program that prints `ready` and begins its work at a line on stdin."""

    def __init__(self, *argv, **env):
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env=dict(os.environ, **env))
        self.pid = self.child.pid
        self.first = self.says()

    def says(self, seconds=30):
        if not select.select([self.child.stdout], [], [], SLOW * seconds)[0]:
            raise TimeoutError("the program under test says nothing")
        return self.child.stdout.readline().strip()

    def go(self):
        self.child.stdin.write("go\n")
        self.child.stdin.flush()

    def tree(self):
        """The process and its descendants."""
        found, stack = [], [self.pid]
        while stack:
            pid = stack.pop()
            found.append(pid)
            for path in glob.glob(f"/proc/{pid}/task/*/children"):
                with contextlib.suppress(OSError):
                    stack += map(int, open(path).read().split())
        return found

    def wait(self, seconds=60):
        self.child.stdin.close()
        return self.child.wait(SLOW * seconds)

    def kill(self):
        self.child.kill()
        self.child.wait()


class Recording:
    """`sonde record` for the time of a with block. Afterwards .trace, .text and .status have the result."""

    def __init__(self, path, *args, test="", families="cuda"):
        self.path, self.args, self.test, self.families = path, args, test, families

    def __enter__(self):
        env = dict(os.environ, SONDE_TEST=self.test)
        command = [SONDE, "record", "-f", "-o", self.path, "-t", self.families, *self.args]
        self.child = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.text = ""
        while "tracing into" not in self.text:
            line = self.child.stderr.readline()
            if not line:
                raise RuntimeError("sonde record: " + self.text)
            self.text += line
        return self

    def __exit__(self, *exc):
        self.child.send_signal(signal.SIGINT)
        try:
            self.text += self.child.communicate(timeout=SLOW * 100)[1]
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise
        self.status = self.child.returncode
        if not exc[0]:
            self.trace = Trace(self.path)
            self.names = self.probe_names()

    def wait_trace(self, condition):
        """Waits until the condition is true of the trace, which has all records that are a second old. Returns whether it is."""
        return wait_for(lambda: condition(Trace(self.path)), 60 * SLOW, 0.3)

    def probe_names(self):
        strings = {e["string"]: e["text"] for e in self.trace.events("meta_string")}
        return {e["number"]: strings.get(e["name"], "") for e in self.trace.events("meta_probe")}

    def calls(self, pids, families=(3,)):
        """{thread: [call]} of families cuda and cudadrv in these processes, ordered by start"""
        threads = collections.defaultdict(list)
        for kind in self.trace.head["schema"]["events"]:
            if kind["id"] >> 8 not in families:
                continue
            for e in self.trace.events(kind["name"]):
                if e["pid"] in pids:
                    # an event may have a field with that name
                    call = dict(e, event=kind["name"], host_function=e.get("function"))
                    call["function"] = self.names[e["probe"]]
                    threads[e["pid"], e["tid"]].append(call)
        for calls in threads.values():
            calls.sort(key=lambda e: (e["start"], -e["time"]))
        return threads

    def objects(self):
        """{path: its last event} of the files probed for family cuda"""
        strings = {e["string"]: e["text"] for e in self.trace.events("meta_string")}
        return {strings.get(o["path"], ""): o for o in self.trace.events("meta_object") if o["family"] == 3}

    def threads(self, root):
        """{(pid, tid) in their own pid namespace: (pid, tid)} of all descendants of a process; needs family proc"""
        pids, found = {root}, {}
        for e in self.trace.events("proc_task"):
            if e["pid"] in pids or e["ppid"] in pids:
                pids.add(e["pid"])
        for e in self.trace.events("proc_task"):
            if e["pid"] in pids:
                found[e["ns_pid"], e["ns_tid"]] = e["pid"], e["tid"]
        for e in sorted(self.trace.events("proc_fork"), key=lambda e: e["time"]):
            if e["pid"] in pids:
                pids.add(e["child_pid"])
                found[e["child_ns_pid"], e["child_ns_tid"]] = e["child_pid"], e["child_tid"]
        return found

    def losses(self, *pids):
        """
        {reason: count} of losses of families cuda and cudadrv and of losses without family. With pids: of these processes or of no known
        process, as other processes on the machine may cause losses too.
        """
        found = collections.Counter()
        for e in self.trace.events("meta_loss"):
            if e["family"] in (0, 3, 6) and (not pids or e["pid"] in (0, *pids)):
                found[e["reason"]] += e["count"]
        return found
