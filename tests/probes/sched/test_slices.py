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

from recording import EVENT_STARTED_BEFORE, SLOW, compile_c, workdir
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


def check_waits(trace, program, begin, end, left_out):
    """Compares the time asleep with what the threads measured, in the same slices."""
    slept, traced, sampled = {}, {}, {}

    def measured(start, stop):
        start, stop = (min(max(t, begin), end) for t in (start, stop))
        return stop - start - overlap(start, stop, left_out)

    for line in program:
        kind, tid, *times = line.split()
        if kind == "slept":
            ns, n = slept.get(int(tid), (0, 0))
            slept[int(tid)] = ns + measured(*map(int, times)), n + 1
    for e in trace.events("sched_off"):
        if e["state"] in (1, "SLEEP"):
            traced[e["tid"]] = traced.get(e["tid"], 0) + measured(e["start"], e["time"])
    for e in trace.events("sample_off"):
        if e["reason"] in (SLEEP, "SLEEP"):
            sampled[e["tid"]] = sampled.get(e["tid"], 0) + measured(e["start"], e["time"])
    for tid, (ns, n) in slept.items():
        got, stacks = traced.get(tid, 0), sampled.get(tid, 0)
        print(f"# thread {tid}: slept {ns / MS:.3f} ms, traced {got / MS:.3f}, with stacks {stacks / MS:.3f}")
        # calling nanosleep takes some time, and so does a CPU that is not free at once before the call
        ok(ns > 100 * MS and 0.95 * ns - n * 10_000 * min(SLOW, 30) <= got <= 1.01 * ns, f"thread {tid}: time asleep is what it measured, within 5%", ns, got)
        # a wait that a slice cuts to less than 1 ms has no stack
        ok(0.85 * got <= stacks <= 1.01 * got, f"thread {tid}: so is that with stacks, but for waits that a slice cuts short", got, stacks)


def check_reports(path, measured):
    out = subprocess.run([SONDE, "report", path, "offcpu"], capture_output=True, text=True, check=True).stdout
    ok("recorded in slices of time" in out, "a report says so", out[-400:])
    table = json.loads(subprocess.run([SONDE, "report", path, "offcpu", "--format", "json"], capture_output=True, text=True, check=True).stdout)
    times = [row["wall_ns"] for row in table["tables"]["threads"]]
    ok(times and all(abs(t / measured - 1) < 0.02 for t in times), "the time of each thread is that of the slices", times, measured)
    ok(abs(table["trace"]["traced_ns"] - table["trace"]["unmeasured_ns"] - measured) < 0.02 * measured,
       "and the JSON has the rest", table["trace"], measured)


def record(program, name, *options):
    """Returns the trace of a recording with forced slices, of a program that runs until it has ended."""
    return Sonde(os.path.join(workdir(), name), "-t", "sched,sample,proc", "--off-cpu", "-p", str(program.pid), "--cost-limit", "0.01", *options,
                 mode="early-slices")


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "slices.c")
    with subprocess.Popen([compile_c(source)], stdout=subprocess.PIPE, text=True) as program:
        sonde = record(program, "slices", "-d", "15" if SLOW > 1 else "5")
        time.sleep(2)
        for sig in (signal.SIGUSR2, signal.SIGUSR1):
            sonde.process.send_signal(sig)
            time.sleep(0.8)
        status = sonde.end(None)
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
    check_waits(trace, output, begin, end, left_out)
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
