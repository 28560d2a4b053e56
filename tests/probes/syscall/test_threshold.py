#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""--osrt-threshold leaves out short calls and counts them; invalid numbers are refused."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import EVENT_OPEN, ROOT, Recording, compile_c, workdir
from tap import done, ok

NO_DURATION, STARTED_BEFORE = 4, 8
GETPPID, NANOSLEEP, WRITE, OPENAT = 110, 35, 1, 257
CALLS = {GETPPID: 2000, NANOSLEEP: 20, WRITE: 100}


def main():
	program = compile_c(os.path.join(HERE, "calls.c"))
	rec = Recording([program, os.path.join(workdir(), "file")], "osrt", ["--osrt-threshold", "1000000"])
	long, shorts = rec.of("syscall"), rec.of("syscall_short")
	whole = [e for e in long if not e["flags"] & (EVENT_OPEN | NO_DURATION | STARTED_BEFORE)]
	ok(whole and all(e["time"] - e["start"] >= 1_000_000 for e in whole), f"{len(whole)} calls of at least 1 ms")
	ok(sum(e["nr"] == NANOSLEEP for e in whole) == CALLS[NANOSLEEP], "all naps are recorded")
	for nr, n in CALLS.items():
		counted = sum(e["count"] for e in shorts if e["nr"] == nr)
		# the program also writes its own lines
		there = sum(e["nr"] == nr for e in long)
		ok(counted + there == n or (nr == WRITE and counted + there > n), f"call {nr}: {counted} counted and {there} recorded",
		   n)
	errors = sum(e["errors"] for e in shorts if e["nr"] == OPENAT) + sum(e["nr"] == OPENAT and e["ret"] < 0 for e in long)
	ok(errors == 1, "the failed call is counted", errors)
	ok(all(0 < e["since"] < e["time"] and e["total"] <= e["count"] * 1_000_000 for e in shorts), "the times of counted calls are summed")
	said = [e["threshold"] for e in rec.trace.events("syscall_threshold")]
	ok(said == [1_000_000], "the trace has the threshold", said)
	report = subprocess.run([os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde")), "report", rec.path, "osrt",
				 "--format", "csv"], capture_output=True, text=True).stdout
	line = next(row.split(",") for row in report.splitlines() if ",getppid," in row)
	ok(int(line[2]) == CALLS[GETPPID], "the report counts them", line)
	refused()
	done()


def refused():
	sonde = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))
	for words, what in ((["--osrt-threshold=-1"], "needs a number"), (["--osrt-threshold=1e3"], "needs a number"),
			    (["--osrt-threshold=99999999999999999999"], "needs a number"), (["--osrt-limit=1"], "unknown option"),
			    (["--osrt-threshold"], "needs a number")):
		p = subprocess.run([sonde, "record", "-d", "0.1", "-o", os.path.join(workdir(), "no"), *words],
				   capture_output=True, text=True)
		ok(p.returncode == 2 and what in p.stderr, " ".join(words) + " is refused", p.stderr.strip())


main()
