#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that exist before and after the trace have spans for the whole traced time."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import EVENT_OPEN, EVENT_STARTED_BEFORE, Recording, compile_c
from spans import SLEEP, by_thread, gaps, merged
from tap import done, ok

SECONDS = 2


def main():
	program = compile_c(os.path.join(HERE, "work.c"))
	# the program outlasts the trace
	rec = Recording([program, "before", "4000"], "sched", ["--sched=all"], stop_after=SECONDS)
	threads = by_thread(merged(rec))
	main_thread = threads.get(rec.pid, [])
	sleeper = [t for t in threads if t != rec.pid]
	if not ok(len(sleeper) == 1 and main_thread, "both threads have spans", list(threads)):
		done()
	slept = threads[sleeper[0]]
	first, last = min(e["start"] for w in threads.values() for e in w), max(e["time"] for w in threads.values() for e in w)
	ok(len(slept) == 1 and slept[0]["flags"] == EVENT_OPEN | EVENT_STARTED_BEFORE and slept[0]["state"] == SLEEP and
	   slept[0]["wake"] == 0, "a thread that slept throughout has one span", slept)
	ok(main_thread[0]["flags"] & EVENT_STARTED_BEFORE and "wake" in main_thread[0], "the other thread slept at the start")
	ok(main_thread[-1]["flags"] & EVENT_OPEN, "the other thread ran at the end", main_thread[-1])
	ok(len(main_thread) > 2 and not any(e["flags"] for e in main_thread[1:-1]), "spans in between have no flag")
	ok(not [g for w in threads.values() for g in gaps(w)], "spans tile")
	begins, ends = [w[0]["start"] for w in threads.values()], {w[-1]["time"] for w in threads.values()}
	ok(rec.began < min(begins) <= max(begins) < rec.live and len(ends) == 1, "all threads begin while sonde starts, and end together",
	   f"{rec.began} {begins} {rec.live} {ends}")
	ok(rec.live + SECONDS * 1e9 - (rec.live - first) <= last < rec.stopped, f"spans fill the traced time: {(last - first) / 1e9:.3f} s")
	without_runtime(program)
	runtimes()
	done()


def without_runtime(program):
	rec = Recording([program, "churn", "8"], "sched", stop_after=2, named=False)
	ok(not merged(rec), "without --sched=all a process without a runtime is not followed")
	rec = Recording([program, "churn", "8"], "sched")
	ok(merged(rec), "a process of -p is followed, with or without runtime")


# prints the ns of CPU time that it used
BURN = "import time; t = time.thread_time_ns()\nwhile time.thread_time_ns() < t + 10**8: pass\nprint(time.thread_time_ns() - t)"


def runtimes():
	python = sys.executable
	rec = Recording([python, "-c", "input()\n" + BURN], "sched")
	spans = by_thread(merged(rec)).get(rec.pid, [])
	ok(spans and spans[0]["flags"] == EVENT_STARTED_BEFORE and not gaps(spans),
	   "a Python process is followed from the start", spans[:1])
	ran = sum(e["time"] - e["start"] for e in spans if "wake" not in e)
	ok(ran >= int(rec.output[-1]), f"its {ran} ns on the CPU are recorded", rec.output)
	found = 0
	for _ in range(5):
		rec = Recording(["/bin/sh", "-c", f'read x; exec {python} -c "$0"', BURN], "sched")
		spans = by_thread(merged(rec)).get(rec.pid, [])
		found += bool(spans) and not gaps(spans) and sum(e["charged"] for e in spans if "wake" not in e) >= int(rec.output[-1])
	ok(found == 5, "a process that becomes Python by exec while sonde traces is followed from then on", f"{found} of 5")


main()
