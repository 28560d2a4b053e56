#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""
What costs nothing while no thread waits, and little while many do: a program without
contention meets no probe; where waits come too fast they are measured in slices, and the report scales.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
import gil_lib
import tap
from sonde_trace import Trace

DEBIAN = gil_lib.pythons()[0]["3.11 debian"]
FACTOR = 0.35  # how far off a scaled figure may be: slices are a tenth of the time or less
BUSY = 0.2  # of the time in which threads waited for a CPU, all together: on a machine of its own it is a hundredth


def run_delay(pid):
    """How long the threads of a process have waited for a CPU, ns."""
    delay = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        with open(path) as f:
            delay += int(f.read().split()[1])
    return delay


def start(kind, seconds, threads):
    p = subprocess.Popen([DEBIAN.exe, "-S", place.here + "/gil_work.py", kind, str(seconds), str(threads)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True,
                         env={"PATH": "/usr/bin:/bin", "PYTHONPATH": place.here, "LC_ALL": "C.UTF-8"})
    running.append(p)
    p.stdout.readline()
    return p


def record(p, seconds, switches="", options=()):
    out = os.path.join(place.here, "slices.sonde")
    sonde = subprocess.Popen([gil_lib.SONDE, "record", "-t", "gil", *options, "-f", "-o", out, "-d", str(seconds), "-p", str(p.pid)],
                             stderr=subprocess.PIPE, universal_newlines=True, env=dict(os.environ, SONDE_TEST=switches))
    running.append(sonde)
    while "tracing into" not in (sonde.stderr.readline() or "tracing into"):
        pass
    p.stdin.write("\n")
    p.stdin.flush()
    return sonde, out


def links_on(name):
    out = subprocess.run(["/usr/sbin/bpftool", "-j", "link", "show"], stdout=subprocess.PIPE).stdout
    return {link["id"] for link in json.loads(out or "[]") if link.get("tp_name") == name}


def no_thread_waits():
    """One thread that computes: no probe is met, and the scheduler's tracepoint is left alone."""
    p = start("spin", 8, 1)
    # the main thread waits for the other one's end, and that without the GIL: but both want it as that one begins
    time.sleep(0.1)
    before = links_on("sched_waking")
    p.stdin.write("\n")
    p.stdin.flush()
    time.sleep(0.5)
    alone = faults_in(p, 0.5)
    sonde, out = record(p, 2)
    # a probed page becomes the process's own as the probe is put there: that is over now
    time.sleep(0.1)
    traced = faults_in(p, 0.5)
    new = links_on("sched_waking") - before
    mine = {int(line.split()[1]) for line in fdinfo(sonde.pid) if line.startswith("link_id:")}
    sonde.communicate(timeout=30)
    trace = Trace(out)
    # other processes' are reported as skipped
    hits = {e["number"]: e["hits"] - e["skipped"] for e in trace.events("meta_hits")}
    tap.ok(sum(hits.values()) == 0 and not list(trace.events("gil_wait")), "no thread waits: no probe is met", hits)
    tap.ok(not new & mine, "no thread waits: no tracepoint of the scheduler", new & mine)
    tap.ok(traced == alone, "no thread waits: as many page faults as without sonde", (alone, traced))
    p.kill()
    p.wait()


def faults_in(p, seconds):
    def faults():
        with open("/proc/%d/stat" % p.pid) as f:
            fields = f.read().rsplit(") ", 1)[1].split()
        return int(fields[7]) + int(fields[9])

    before = faults()
    time.sleep(seconds)
    return faults() - before


def fdinfo(pid):
    """The lines of all descriptors of a sonde's children."""
    for other in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/status" % other) as f:
                if "\nPPid:\t%d\n" % pid not in f.read():
                    continue
            for fd in os.listdir("/proc/%s/fdinfo" % other):
                with open("/proc/%s/fdinfo/%s" % (other, fd)) as f:
                    yield from f
        except OSError:
            pass


def report(out):
    return json.loads(subprocess.run([gil_lib.SONDE, "report", out, "--format", "json", "gil"], stdout=subprocess.PIPE,
                                     check=True, timeout=60).stdout)["tables"]


def in_slices(what, options, switches):
    """Threads that wait all the time: whatever part of it is measured, the scaled figures are those of the whole."""
    p = start("spin", 30, 3)
    sonde, out = record(p, 9, switches, options)
    before = run_delay(p.pid)
    sonde.communicate(timeout=60)
    delay = run_delay(p.pid) - before
    p.kill()
    p.wait()
    trace = Trace(out)
    slices = sorted((e["start"], e["time"], e["pause"], e["seen"]) for e in trace.events("gil_slice"))
    tap.ok(len(slices) >= 3 and all(s[0] < s[1] and s[2] > 10 * (s[1] - s[0]) / 2 for s in slices),
           "%s: it is measured in slices" % what, slices)
    if not slices:
        return
    first = slices[0][0] - slices[0][2]
    after = [w for w in trace.events("gil_wait") if w["time"] > first]
    outside = [w for w in after if not any(a <= w["time"] <= b for a, b, *_ in slices)]
    # a few end before the programs have heard of the slice's end. Were the pauses measured, which are 18 times as long, it
    # would be most of them
    tap.ok(len(outside) <= max(3, len(after) / 2), "%s: nothing is measured between them" % what, "%d of %d" % (len(outside), len(after)))
    backward = [w for w in trace.events("gil_wait") if w["start"] > w["time"]]
    tap.ok(not backward, "%s: no wait ends before its start" % what, backward)
    tables = report(out)
    # three threads that compute on one GIL: two of them wait at any time
    one = tables["interpreters"][0]
    waited, wall = one["wait_ns"], 9e9
    name = "%s: times are scaled to the whole" % what
    if delay > BUSY * wall:
        # what a thread waited since before a slice is not in it, until it has had a CPU and asks again
        tap.skip(name, "the machine is so busy that its threads waited %.1f s for a CPU" % (delay / 1e9))
    else:
        tap.ok(abs(waited / (2 * wall) - 1) < FACTOR, name, one)
    blamed = sum(row["wait_ns"] for row in tables["blame"])
    tap.ok(abs(blamed / waited - 1) < 0.05, "%s: so is the blame" % what, (blamed, waited))
    losses = [e for e in trace.events("meta_loss") if e["family"] == 4 and e["reason"] != 8]
    tap.ok(sonde.returncode == 0 and not losses, "%s: nothing is lost over it" % what, losses)
    said = subprocess.run([gil_lib.SONDE, "report", out, "gil"], stdout=subprocess.PIPE, universal_newlines=True).stdout
    tap.ok("slices of time" in said, "%s: the report says so" % what, said)


running = []
try:
    with gil_lib.Workplace() as place:
        no_thread_waits()
        in_slices("slices", [], "gil-slices")
        in_slices("slices with --gil=full", ["--gil=full"], "gil-slices")
finally:
    for p in running:
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
            p.wait()
tap.done()
