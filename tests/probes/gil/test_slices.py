#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""
The cost of family gil: a program without contention hits no probe. If waits are too frequent they are
measured in slices of time, and the report scales the figures.
"""
import json
import os
import signal
import subprocess
import time

import gil_lib
import proc_files
import tap
from sonde_cli import Sonde, tables
from sonde_trace import Trace

DEBIAN = gil_lib.pythons()[0]["3.11 debian"]
FACTOR = 0.35  # the allowed error of a scaled figure: slices are at most a tenth of the time
BUSY = 0.2  # the allowed share of time in which threads were runnable: a hundredth on an idle machine


def run_delay(pid):
    """The time in ns for which the threads of a process were runnable without a CPU"""
    texts = [proc_files.read("/proc/%d/task/%d/schedstat" % (pid, tid)) for tid in proc_files.threads(pid)]
    return sum(int(text.split()[1]) for text in texts if text)


def start(kind, seconds, threads):
    running.append(gil_lib.start_work(place, DEBIAN, kind, seconds, threads))
    return running[-1]


def record(p, seconds, switches="", options=()):
    out = os.path.join(place.here, "slices.sonde")
    sonde = Sonde(out, "-t", "gil", *options, "-d", str(seconds), "-p", str(p.pid), mode=switches).process
    running.append(sonde)
    p.stdin.write("\n")
    p.stdin.flush()
    return sonde, out


def links_on(name):
    out = subprocess.run(["/usr/sbin/bpftool", "-j", "link", "show"], stdout=subprocess.PIPE).stdout
    return {link["id"] for link in json.loads(out or "[]") if link.get("tp_name") == name}


def no_thread_waits():
    """One thread computes: no probe is hit, and the scheduler's tracepoint is not attached."""
    p = start("spin", 8, 1)
    # the main thread joins the other one without the GIL, but both need it when the other one starts
    time.sleep(0.1)
    before = links_on("sched_waking")
    p.stdin.write("\n")
    p.stdin.flush()
    time.sleep(0.5)
    alone = faults_in(p, 0.5)
    sonde, out = record(p, 2)
    # inserting a probe copies the page, which causes a fault; by now all probes are inserted
    time.sleep(0.1)
    traced = faults_in(p, 0.5)
    new = links_on("sched_waking") - before
    lines = [line for child in proc_files.children(sonde.pid) for line in proc_files.fdinfo(child)]
    mine = {int(line.split()[1]) for line in lines if line.startswith("link_id:")}
    sonde.communicate(timeout=30)
    trace = Trace(out)
    # those of other processes are reported as skipped
    hits = {e["number"]: e["hits"] - e["skipped"] for e in trace.events("meta_hits")}
    tap.ok(sum(hits.values()) == 0 and not list(trace.events("gil_wait")), "no thread waits: no probe is hit", hits)
    tap.ok(not new & mine, "no thread waits: no tracepoint of the scheduler is attached", new & mine)
    tap.ok(traced == alone, "no thread waits: no more page faults than without sonde", (alone, traced))
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


def in_slices(what, options, switches):
    """Threads that wait constantly: the scaled figures are those of the whole time, regardless of the measured part."""
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
    # a few waits end before the BPF programs know of the slice's end. Most waits would, if the pauses, which are 18
    # times as long, were measured
    tap.ok(len(outside) <= max(3, len(after) / 2), "%s: nothing is measured between them" % what, "%d of %d" % (len(outside), len(after)))
    backward = [w for w in trace.events("gil_wait") if w["start"] > w["time"]]
    tap.ok(not backward, "%s: no wait ends before its start" % what, backward)
    found = tables("report", out, "gil")
    # three threads compute on one GIL, so that two wait at any time
    one = found["interpreters"][0]
    waited, wall = one["wait_ns"], 9e9
    name = "%s: times are scaled to the whole" % what
    if delay > BUSY * wall:
        # a slice misses the wait of a thread that began before it, until the thread runs and waits again
        tap.skip(name, "the machine is so busy that its threads waited %.1f s for a CPU" % (delay / 1e9))
    else:
        tap.ok(abs(waited / (2 * wall) - 1) < FACTOR, name, one)
    blamed = sum(row["wait_ns"] for row in found["blame"])
    tap.ok(abs(blamed / waited - 1) < 0.05, "%s: so is the blame" % what, (blamed, waited))
    losses = [e for e in trace.events("meta_loss") if e["family"] == 4 and e["reason"] != 8]
    tap.ok(sonde.returncode == 0 and not losses, "%s: nothing is lost over it" % what, losses)
    said = subprocess.run([gil_lib.SONDE, "report", out, "gil"], stdout=subprocess.PIPE, universal_newlines=True).stdout
    tap.ok("slices of time" in said, "%s: the report says so" % what, said)


running = []
try:
    with gil_lib.Workplace() as place:
        no_thread_waits()
        in_slices("slices", [], "early-gil-slices")
        in_slices("slices with --gil=full", ["--gil=full"], "early-gil-slices")
finally:
    for p in running:
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
            p.wait()
tap.done()
