#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""--cost-limit: in slices of time, the intervals of threads tile, and waits are those that the program measured itself."""
import json
import os
import signal
import subprocess
import sys
import time

from recording import EVENT_STARTED_BEFORE, PROBE_NS, SLOW, compile_c, steal_ns, workdir
from sonde_cli import SONDE, Sonde
from sonde_trace import Trace
from tap import done, ok, skip_all

MS = 1_000_000
RACE = 50_000 * SLOW  # a program that was interrupted as the slice ended may end an interval later
SLEEP = 4  # SAMPLE_SLEEP


def pauses_of(trace):
    return sorted((e["start"], e["time"]) for e in trace.events("meta_unmeasured"))


def overlap(begin, end, pauses):
    return sum(max(0, min(end, b) - max(begin, a)) for a, b in pauses)


def joined(times):
    """The times without overlaps"""
    union = []
    for begin, end in sorted(times):
        if union and begin <= union[-1][1]:
            union[-1] = union[-1][0], max(end, union[-1][1])
        else:
            union.append((begin, end))
    return union


def check_tiles(trace, pauses, left_out):
    """Each thread's intervals leave out the pauses and nothing else."""
    threads, wrong, inside = {}, [], []
    for e in trace.events("sched_run", "sched_off"):
        threads.setdefault(e["tid"], []).append((e["start"], e["time"]))
    for tid, spans in threads.items():
        spans.sort()
        inside += [(tid, s) for s in spans if overlap(*s, pauses) > RACE]
        for (_, end), (start, _) in zip(spans, spans[1:]):
            if end == start or any(abs(end - a) <= RACE and abs(start - b) <= RACE for a, b in pauses):
                continue
            if overlap(end, start, left_out) < start - end - RACE:
                wrong.append((tid, end, start - end))
    ok(len(threads) == 5 and not wrong, f"the intervals of {len(threads)} threads tile the slices", wrong[:5])
    ok(not inside, "no interval lies in a pause", inside[:5])


def check_waits(trace, program, begin, end, left_out, steal):
    """
    Compares sleeps with those that the threads measured, for those that no slice cuts. A thread that waits for a CPU before it sleeps may
    sleep for a part of the time only, or not at all.
    """
    naps = {}
    for kind, tid, *times in map(str.split, program):
        start, stop, awake = map(int, times) if kind == "slept" else (0, 0, 0)
        if begin < start and stop < end and not overlap(start, stop, left_out):
            naps.setdefault(int(tid), []).append((start, stop, awake))
    for family, kind in (("sched", "sched_off"), ("sample", "sample_off")):
        spans, others = {}, {}
        for e in trace.events(kind):
            others.setdefault(e["tid"], []).append(e)
            if (e["state"] in (1, "SLEEP")) if family == "sched" else e["reason"] in (SLEEP, "SLEEP"):
                spans.setdefault(e["tid"], []).append((e["start"], e["time"]))
        for tid, mine in naps.items():
            found = [[s for s in spans.get(tid, []) if start <= s[0] and s[1] <= stop] for start, stop, _ in mine]
            wrong = [(nap, f) for nap, f in zip(mine, found) if len(f) != 1 and not (not f and nap[2] >= (nap[1] - nap[0]) / 2)]
            ok(len(mine) > 20 and not wrong, f"{family}, thread {tid}: each of {len(mine)} sleeps has an interval",
               [(nap, f, [e for e in others.get(tid, []) if e["start"] < nap[1] and e["time"] > nap[0]]) for nap, f in wrong[:3]])
            slept = sum(b - a for f in found for a, b in f)
            least = sum(stop - start - awake - PROBE_NS for start, stop, awake in mine) - steal
            ok(least <= slept, f"{family}, thread {tid}: the intervals are as long as the sleeps", slept, least)


def check_reports(path, measured):
    out = subprocess.run([SONDE, "report", path, "offcpu"], capture_output=True, text=True, check=True).stdout
    ok("recorded in slices of time" in out, "a report says so", out[-400:])
    table = json.loads(subprocess.run([SONDE, "report", path, "offcpu", "--format", "json"], capture_output=True, text=True, check=True).stdout)
    times = [row["wall_ns"] for row in table["tables"]["threads"]]
    ok(times and all(abs(t / measured - 1) < 0.02 for t in times), "the time of each thread is that of the slices", times, measured)
    ok(abs(table["trace"]["traced_ns"] - table["trace"]["unmeasured_ns"] - measured) < 0.02 * measured,
       "and the JSON has the rest", table["trace"], measured)


def has_pauses(sonde, n):
    ok(sonde.wait_trace(lambda trace: len(pauses_of(trace)) >= n), f"the recording has {n} pauses")


def record(program, name, *options):
    """Returns the trace of a recording with forced slices, of a program that runs until it has ended."""
    return Sonde(os.path.join(workdir(), name), "-t", "sched,sample,proc", "--off-cpu", "-p", str(program.pid), "--cost-limit", "0.01", *options,
                 mode="early-slices")


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slices.c")
    with subprocess.Popen([compile_c(source)], stdout=subprocess.PIPE, text=True) as program:
        steal = steal_ns()
        sonde = record(program, "slices")
        has_pauses(sonde, 3)
        sonde.process.send_signal(signal.SIGUSR2)
        time.sleep(0.8)
        sonde.process.send_signal(signal.SIGUSR1)
        has_pauses(sonde, 6)
        status = sonde.end()
        steal = steal_ns() - steal
        program.terminate()
        output = program.stdout.read().splitlines()
    trace = Trace(sonde.path)
    pauses = pauses_of(trace)
    cost = next(trace.events("meta_cost"))
    begin, end = cost["time"] - cost["wall"], next(trace.events("meta_end"))["stop"]
    left_out = joined(pauses + [(e["start"], e["time"]) for e in trace.events("meta_pause")])
    ok(status == 0 and "; 0 lost" in sonde.messages and "of the time, to limit their cost to about" in sonde.messages, "the end states the slices, and no loss",
       sonde.messages)
    ok(len(pauses) >= 4 and all(b - a >= 100 * MS for a, b in pauses[:-1]), f"{len(pauses)} pauses", pauses)
    check_tiles(trace, pauses, left_out)
    check_waits(trace, output, begin, end, left_out, steal)
    waiter = int(next(line for line in output if line.startswith("waiter")).split()[1])
    waits = [e for e in trace.events("sched_off") if e["tid"] == waiter]
    ok(len(waits) >= 4 and all(e["flags"] & EVENT_STARTED_BEFORE for e in waits), "a thread that waits all the time does so in each slice",
       [e["flags"] for e in waits])
    check_reports(sonde.path, end - begin - overlap(begin, end, left_out))
    with subprocess.Popen([compile_c(source)], stdout=subprocess.DEVNULL) as program:
        short = record(program, "short", "-d", "0.4")
        short.end(None)
        program.kill()
    trace = Trace(short.path)
    stop, pauses = next(trace.events("meta_end"))["stop"], pauses_of(trace)
    ok(len(pauses) == 1 and abs(pauses[0][1] - stop) < 100 * MS * min(SLOW, 10), "a recording may end in a pause", pauses, stop)
    check_tiles(trace, pauses, pauses)
    done()


if __name__ == "__main__":
    sys.exit(main())
