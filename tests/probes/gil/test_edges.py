#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""
What is easily lost: waits that are open when tracing or the process ends, a holder
that never lets go, a Python that starts late, interpreters with GILs of their own,
processes that were not selected, and sched_waking after the last wait.
"""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
import gil_lib
import tap
from gil_lib import OPEN, TIMEOUT
from sonde_trace import Trace

found, missing = gil_lib.pythons()
DEBIAN = found["3.11 debian"]


class Sonde:
    """`sonde record`, from tracing on to its end."""

    def __init__(self, *args, switches=""):
        self.out = os.path.join(place.here, "edge.sonde")
        self.p = subprocess.Popen([gil_lib.SONDE, "record", "-t", "gil", "-f", "-o", self.out, "-d", "60", *args],
                                  stderr=subprocess.PIPE, universal_newlines=True,
                                  env=dict(os.environ, SONDE_TEST=switches))
        running.append(self.p)
        while "tracing into" not in (self.p.stderr.readline() or "tracing into"):
            pass

    def stop(self, interrupt=True):
        if interrupt and self.p.poll() is None:
            self.p.send_signal(signal.SIGINT)
        self.messages = self.p.communicate(timeout=30)[1]
        self.trace = Trace(self.out)
        return list(self.trace.events("gil_wait"))


def work(kind, seconds, threads, python=None):
    python = python or DEBIAN
    p = subprocess.Popen([python.exe, "-S", place.here + "/gil_work.py", kind, str(seconds), str(threads)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True,
                         env={"PATH": "/usr/bin:/bin", "PYTHONPATH": place.here, "LC_ALL": "C.UTF-8"})
    running.append(p)
    p.stdout.readline()
    return p


def go(p):
    p.stdin.write("\n")
    p.stdin.flush()


def open_at_the_end():
    """Two threads want what a third holds: in any moment both are in a wait."""
    p = work("hog", 60, 3)
    sonde = Sonde("-p", str(p.pid))
    go(p)
    p.stdout.readline()
    time.sleep(0.7)
    waits = sonde.stop()
    p.kill()
    p.wait()
    still = [w for w in waits if w["flags"] & OPEN]
    # one may have been between two waits of a switch interval; main waits too, in join
    tap.ok(1 <= len({w["tid"] for w in still}) == len(still) <= 3, "a wait that is open when tracing stops is there", still)


def named_holders(python):
    """(waits for the hog, how many come before one names it, are all others named right)"""
    r = gil_lib.record(python, place, "hog", 2, 2, truth=False)
    hog = r.holds[0]
    waits = sorted((w for w in r.waits if w["result"] == TIMEOUT and hog[1] < w["start"] and w["time"] < hog[2]),
                   key=lambda w: w["time"])
    named = [w["locked"] and w["holder"] == hog[0] for w in waits]
    first = named.index(True) if True in named else len(named)
    # until then none is known: that is "not seen", and no wrong name
    right = all(named[first:]) and not any(w["holder"] for w in waits[:first])
    return len(waits), first, right


def holder_that_never_waits(python):
    """
    It takes a look at all threads, some time after the first wait for it, and now and then
    several: how soon depends on the machine. From the first wait that names it all do, and no other is ever named.
    """
    tries = []
    while len(tries) < 5:
        tries.append(named_holders(python))
        if not tries[-1][2] or tries[-1][1] <= tries[-1][0] / 2:
            break
    tap.ok(all(right for *_, right in tries) and tries[-1][1] <= tries[-1][0] / 2 and tries[-1][0],
           "%s: who holds on is named, also if it never waited" % python.name, tries)
    if len(tries) > 1:
        tap.note("%s: waits, and those before the name, of each try: %s" % (python.name, [t[:2] for t in tries]))


def open_when_killed():
    p = work("spin", 5, 3)
    sonde = Sonde("-p", str(p.pid))
    go(p)
    time.sleep(0.5)
    p.kill()
    p.wait()
    waits = sonde.stop(interrupt=False)
    still = [w for w in waits if w["flags"] & OPEN]
    tap.ok(1 <= len(still) <= 3, "waits that a killed process leaves open are there", still)


def starts_late(switches, how):
    """The library is mapped while sonde runs: waits may be missed for a moment, and the trace says so."""
    python = next((found[n] for n in ("3.12 pyenv", "3.9 pyenv", "3.13 pyenv") if n in found), None)
    if not python:
        return tap.skip("a Python that starts late is traced" + how, "no pyenv")
    copy = tempfile.mkdtemp(prefix="sonde-gil-")
    try:
        # a file that no process has mapped yet
        lib = shutil.copy(python.binary, copy)
        sonde = Sonde(switches=switches)
        p = subprocess.Popen([python.exe, "-S", place.here + "/gil_work.py", "spin", "0.8", "2"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, universal_newlines=True,
                             env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": copy})
        running.append(p)
        p.stdout.readline()
        time.sleep(0.5)
        mapped = lib in open("/proc/%d/maps" % p.pid).read()
        p.communicate("\n", timeout=30)
        waits = [w for w in sonde.stop() if w["pid"] == p.pid]
        if not mapped:
            return tap.skip("a Python that starts late is traced" + how, "this pyenv's Python takes its own library")
        tap.ok(len(waits) > 10, "a Python that starts late is traced" + how, "%d waits\n%s" % (len(waits), sonde.messages))
        if switches:
            return  # by libc it is the C library which is probed, and that was there
        blind = [e for e in sonde.trace.events("meta_loss") if e["family"] == 4 and e["reason_name"] == "LOSS_BLIND"]
        tap.ok(blind, "its attach gap is reported" + how)
    finally:
        shutil.rmtree(copy)


def only_the_chosen():
    a, b = work("spin", 0.8, 2), work("spin", 0.8, 2)
    sonde = Sonde("-p", str(a.pid))
    for p in (a, b):
        go(p)
    for p in (a, b):
        p.communicate(timeout=30)
    waits = sonde.stop(interrupt=False)
    tap.ok(waits and {w["pid"] for w in waits} == {a.pid}, "with -p others are left out",
           collections.Counter(w["pid"] for w in waits))


def interpreters():
    python = found.get("3.12 pyenv")
    if not python:
        return tap.skip("each interpreter's GIL has its own address", missing.get("3.12 pyenv"))
    p = work("interpreters", 1, 2, python)
    sonde = Sonde("-p", str(p.pid))
    p.communicate("\n", timeout=30)
    waits = sonde.stop(interrupt=False)
    gils = collections.defaultdict(set)
    for w in waits:
        gils[w["gil"]].add(w["tid"])
    busy = {g: t for g, t in gils.items() if sum(w["gil"] == g for w in waits) > 30}
    tap.ok(len(busy) == 2, "each interpreter's GIL has its own address", {hex(g): t for g, t in gils.items()})


def attacher_of(pid):
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/status" % other) as f:
                text = f.read()
        except OSError:
            continue
        if text.startswith("Name:\tsonde-attacher\n") and "\nPPid:\t%d\n" % pid in text:
            return other
    raise RuntimeError("no sonde-attacher")


def waking_links(pid):
    """How many links on sched_waking this sonde's attacher holds."""
    mine = set()
    attacher = attacher_of(pid)
    for fd in os.listdir("/proc/%s/fdinfo" % attacher):
        try:
            with open("/proc/%s/fdinfo/%s" % (attacher, fd)) as f:
                mine.update(int(line.split()[1]) for line in f if line.startswith("link_id:"))
        except OSError:
            pass
    out = subprocess.run(["/usr/sbin/bpftool", "-j", "link", "show"], stdout=subprocess.PIPE).stdout
    return sum(link.get("tp_name") == "sched_waking" and link["id"] in mine for link in json.loads(out or "[]"))


def waking_becomes(sonde, want):
    """Whether sonde soon holds that many links on sched_waking; what it held last."""
    end = time.monotonic() + 40
    while True:
        held = waking_links(sonde.p.pid)
        if held == want or time.monotonic() > end:
            return held
        time.sleep(0.2)


def waking_on_demand():
    p = work("spin", 60, 2)
    sonde = Sonde("-p", str(p.pid))
    idle = waking_links(sonde.p.pid)
    go(p)
    busy = waking_becomes(sonde, 1)
    # the process has to stay for sonde to stay; no thread waits while it is stopped
    p.send_signal(signal.SIGSTOP)
    after = waking_becomes(sonde, 0)
    p.kill()
    p.wait()
    sonde.stop(interrupt=False)
    tap.ok((idle, busy, after) == (0, 1, 0), "sched_waking is attached only while a thread waits", (idle, busy, after))


running = []
try:
    with gil_lib.Workplace() as place:
        open_at_the_end()
        gil_lib.each_python("who holds on is named", holder_that_never_waits)
        open_when_killed()
        only_the_chosen()
        interpreters()
        starts_late("", "")
        starts_late("gil-pattern", ", by libc")
        waking_on_demand()
finally:
    for p in running:
        if p.poll() is None:
            p.kill()
            p.wait()
tap.done()
