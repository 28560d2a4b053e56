#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate timeout=400
"""Recordings begin and end beside threads that push and pop without pause: of each thread, the ranges between its first
and its last recorded one are all there, and afterwards the program's table of NVTX has the bytes that it had before.
With STRESS=1 the shim also serves the table 1,000 times."""
import collections
import os
import subprocess

from nvtx_lib import SHIM, SONDE, programs
from recording import SLOW, workdir
from sonde_trace import Trace
from tap import done, ok

THREADS, RECORDINGS = 3, 4


class Target:
	def __init__(self, program, preload=None):
		env = dict(os.environ, SONDE_CUPTI_LOOK_MS="1")
		if preload:
			env["LD_PRELOAD"] = preload
		self.process = subprocess.Popen([program, str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
						env=env)

	def ask(self, line):
		self.process.stdin.write(line + "\n")
		self.process.stdin.flush()
		return self.process.stdout.readline().strip()

	def stop(self):
		self.process.communicate("stop\n", timeout=30)
		return self.process.returncode


def record(pid, path):
	return subprocess.run([SONDE, "record", "-t", "nvtx", "--inject", "-p", str(pid), "-d", str(1 * SLOW), "-f", "-o", path],
			      capture_output=True, text=True, timeout=60 * SLOW)


def holes(trace):
	"""How many ranges are missing between the first and the last of each thread, and how many there are"""
	numbers = collections.defaultdict(list)
	for e in trace.events("nvtx_range"):
		numbers[e["tid"]].append(e["payload"])
	missing = sum(max(n) - min(n) + 1 - len(set(n)) + len(n) - len(set(n)) for n in numbers.values())
	return missing, len(numbers), sum(len(n) for n in numbers.values())


def check_recordings(program):
	target = Target(program)
	before = target.ask("table")
	for i in range(RECORDINGS):
		path = os.path.join(workdir(), f"{i}.sonde")
		result = record(target.process.pid, path)
		missing, threads, n = holes(Trace(path))
		ok(result.returncode == 0 and threads == THREADS and n > 100 and not missing,
		   f"recording {i + 1}: the ranges of each thread are complete", f"{missing} of {n} missing, {threads} threads; {result.stderr}")
		after = target.ask("table")
		ok(after == before, f"recording {i + 1}: the table is as before", f"{before}\n{after}")
	ok(target.stop() == 0, "the program ends as usual")


def check_rounds(program, rounds):
	target = Target(program, SHIM)
	before = target.ask("table")
	same = target.ask(f"rounds {rounds}")
	ok(same == str(rounds), f"the table is as before after each of {rounds} rounds", same)
	ok(target.ask("table") == before, "and at the end")
	ok(target.stop() == 0, "the program ends as usual")


def main():
	for program in programs("nvtx_rounds").values():
		check_recordings(program)
	check_rounds(program, 1000 if os.environ.get("STRESS") else 20)
	done()


main()
