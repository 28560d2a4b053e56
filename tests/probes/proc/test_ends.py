#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Processes whose threads end at once on several CPUs: each thread's end is recorded, regardless of which ended last."""
import collections
import os

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import Recording, compile_c, counted
from tap import done, ok

ROUNDS, THREADS = 200, 8


def main():
	rec = Recording([compile_c(os.path.join(HERE, "ends.c")), str(ROUNDS), str(THREADS)], "proc")
	ok(rec.status == 0 and " 0 lost" in rec.messages, "recorded without losses", rec.messages)
	pids = {int(line) for line in rec.output}
	ends, tids = collections.Counter(), set()
	for e in rec.trace.events("proc_exit"):
		if e["pid"] in pids:
			ends[e["pid"]] += 1
			tids.add((e["pid"], e["tid"]))
	missing = {pid: ends[pid] for pid in pids if ends[pid] != THREADS + 1}
	ok(len(pids) == ROUNDS and not missing and len(tids) == sum(ends.values()),
	   f"{THREADS + 1} ends of threads in each of {ROUNDS} processes, each recorded once",
	   f"{counted(sum(ends.values()), ROUNDS * (THREADS + 1))}: {missing}" if missing else "")
	done()


main()
