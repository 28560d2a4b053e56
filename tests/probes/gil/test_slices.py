#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=360
"""
The cost of family gil: a program without contention hits no probe. If waits are too frequent, or --cost-limit
requires it, they are measured in slices of time, and the report scales the figures. `limited`: only the latter.
"""
import json
import os
import signal
import subprocess
import sys
import time

import bounds
import gil_lib
import proc_files
import tap
from sonde_cli import Sonde, tables
from sonde_trace import Trace
from waiting import state, wait_for

DEBIAN = gil_lib.pythons()[0]["3.11 debian"]
WALL = 9  # seconds of each
MS = 1_000_000
# An emulated processor stops for longer between two readings of the clock, and has fewer slices in the same time
IS_SLOW = gil_lib.SLOW > 1
EDGE = 20 * MS if IS_SLOW else MS  # ns by which two readings at an end of a wait or of a slice may differ


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
    before = links_on("sched_waking")
    p.stdin.write("\n")
    p.stdin.flush()
    # the main thread joins the other one without the GIL, but both need it when the other one starts
    wait_for(lambda: len(proc_files.threads(p.pid)) == 2 and state(p.pid) == "S", 60)
    alone = faults_in(p, 0.5)
    sonde, out = record(p, 2)
    # inserting a probe copies the page, which causes a fault; by now all probes are inserted
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
    tap.ok(traced <= alone, "no thread waits: no more page faults than without sonde", (alone, traced))
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
    p = start("spin", WALL + 21, 3)
    sonde, out = record(p, WALL, switches, options)
    sonde.communicate(timeout=100)
    p.kill()
    p.wait()
    trace = Trace(out)
    slices = sorted((e["start"], e["time"], e["pause"], e["seen"]) for e in trace.events("gil_slice") if e["start"] < e["time"])
    tap.ok(len(slices) >= 3 and all(s[0] < s[1] and s[2] > 10 * (s[1] - s[0]) / 2 for s in slices),
           "%s: it is measured in slices" % what, slices)
    if not slices:
        return
    first = slices[0][0] - slices[0][2]
    after = [w for w in trace.events("gil_wait") if w["time"] > first]
    outside = [w for w in after if not any(a <= w["time"] <= b for a, b, *_ in slices)]
    # a few waits end before the BPF programs know of the slice's end. Most waits would, if the pauses, which are 18
    # times as long, were measured
    name = "%s: nothing is measured between them" % what
    tap.ok(len(outside) <= max(3, len(after) / 2), name, "%d of %d" % (len(outside), len(after)))
    backward = [w for w in trace.events("gil_wait") if w["start"] > w["time"]]
    tap.ok(not backward, "%s: no wait ends before its start" % what, backward)
    found = tables("report", out, "gil")
    # three threads compute on one GIL, so that two wait at any time
    one = found["interpreters"][0]
    waited, wall = one["wait_ns"], WALL * 1e9
    bounds.within("%s: times are scaled to the whole" % what, waited / (2 * wall), 1, 0.35,
                  "a slice misses the wait of a thread that began before it, until the thread runs and waits again", one)
    blamed = sum(row["wait_ns"] for row in found["blame"])
    bounds.within("%s: so is the blame" % what, blamed / waited, 1, 0.05, "a hand-over's time has no holder", (blamed, waited))
    losses = [e for e in trace.events("meta_loss") if e["family"] == 4 and e["reason"] != 8]
    tap.ok(sonde.returncode == 0 and not losses, "%s: nothing is lost over it" % what, losses)
    said = subprocess.run([gil_lib.SONDE, "report", out, "gil"], stdout=subprocess.PIPE, universal_newlines=True).stdout
    tap.ok("measured only in" in said, "%s: the report says so" % what, said)


def check_slices(what, slices, waits, scaled):
    """Slices and pauses have no gaps between them, `seen` counts each wait once, and the report weighs each slice by its pause."""
    gaps = [b[0] - b[2] - a[1] for a, b in zip(slices, slices[1:])]
    tap.ok(not any(gaps) and all(a < b for a, b, *_ in slices[:-1]), "%s: each pause begins where the slice before it ends" % what, gaps)
    tap.ok(slices[-1][1] >= max(w["time"] for w in waits), "%s: the last slice or pause reaches the end" % what, slices[-1])
    counts = [sum(1 for w in waits if a <= w["time"] <= b) for a, b, *_ in slices]
    seen = sum(s[3] for s in slices)
    tap.ok(abs(seen - sum(counts)) <= 0.05 * sum(counts), "%s: each wait is counted in one slice" % what, seen, counts)
    # the pause before a slice that the end cut short, perhaps to nothing, belongs to the slice before it
    pauses = [p for _, _, p, _ in slices]
    lengths = [b - a for a, b, *_ in slices]
    for i in range(1, len(slices)):
        if 8 * lengths[i] < lengths[i - 1]:
            pauses[i - 1] += pauses[i]
            pauses[i] = 0
    weights = [(a, b, 1 + p / (b - a)) for (a, b, *_), p in zip(slices, pauses) if a < b]
    want = sum((w["time"] - w["start"]) * next((f for a, b, f in weights if a <= w["time"] <= b), 1) for w in waits)
    tap.ok(abs(scaled / want - 1) < 0.001, "%s: each wait has the weight of its slice" % what, scaled, want)


def record_limited(options, switches):
    """(recording, slices, the report's sum of waits)"""
    slices, scaled = [], []

    def read(path, trace):
        slices.extend(sorted((e["start"], e["time"], e["pause"], e["seen"]) for e in trace.events("gil_slice")))
        scaled.append(tables("report", path, "gil")["interpreters"][0]["wait_ns"])

    seconds = 8 if IS_SLOW or "slow-gil-slices" in switches else 4
    r = gil_lib.record(DEBIAN, place, "spin", seconds, 3, switches, options=["--cost-limit", "1", *options], families="gil,sched", read=read)
    return r, slices, scaled[0]


def limited_cost(what, options, switches="early-slices"):
    """
    The slices of --cost-limit: in them each wait is recorded as the preloaded library logged it, and in between none. With the checks of
    check_slices() this states the scaled sum exactly, which an estimate from five slices can't.
    """
    r, slices, scaled = record_limited(options, switches)
    tap.ok(len([s for s in slices if s[2] > 100 * MS]) >= 4, "%s: gil_slice has the slices" % what, slices)
    mine = gil_lib.by_thread((w["tid"], w["start"], w["time"]) for w in r.waits)

    def recorded(tid, start, end):
        return any(a <= start and end <= b for a, b in mine[tid])

    inside = [w for w in r.truth_waits if any(a + EDGE < w[1] and w[2] + EDGE < b for a, b, *_ in slices)]
    missed = [w for w in inside if not recorded(*w[:3])]
    tap.ok(len(inside) > 50 and not missed, "%s: each of %d waits in a slice is recorded" % (what, len(inside)), missed)
    spans = r.waits + [e for list_ in r.full.values() for e in list_]
    outside = [e for e in spans if not any(a <= e["start"] and e["time"] <= b for a, b, *_ in slices)]
    outside += [e for e in r.drops if not any(a <= e["time"] <= b for a, b, *_ in slices)]
    tap.ok(not outside, "%s: and nothing in a pause" % what, len(outside), outside[:5], slices)
    tap.ok(r.status == 0 and not r.losses, "%s: nothing is lost" % what, r.losses, r.messages)
    check_slices(what, slices, r.waits, scaled)


running = []
try:
    with gil_lib.Workplace() as place:
        limited_cost("--cost-limit", [])
        if "limited" not in sys.argv:
            limited_cost("--cost-limit with --gil=full", ["--gil=full"])
            for options in ([], ["--gil=full"]):
                limited_cost("--cost-limit, 0.1 s for each step %s" % "".join(options), options, "early-slices,slow-gil-slices")
            limited_cost("--cost-limit with perf events", [], "early-slices,no-multi,no-session")
            no_thread_waits()
            in_slices("slices", [], "early-gil-slices")
            in_slices("slices with --gil=full", ["--gil=full"], "early-gil-slices")
finally:
    for p in running:
        if p.poll() is None:
            p.send_signal(signal.SIGKILL)
            p.wait()
tap.done()
