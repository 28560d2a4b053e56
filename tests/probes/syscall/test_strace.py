#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The same command under sonde and under strace: the same number of each call."""
import collections
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from recording import Recording, workdir
from tap import done, ok, skip_all

COMMAND = ["/bin/sh", "-c", "read x; find /usr/include -name '*.h' -newer /etc/hostname | sort | tail -n 1"]


def main():
	if not shutil.which("strace"):
		skip_all("there is no strace")
	rec = Recording(COMMAND, "syscall")
	seen = collections.Counter()
	for e in rec.trace.events("syscall"):
		# where the recording found it, and what never returns, strace does not count
		if e["nr_name"] not in ("SYS_exit_group", "SYS_exit") and not e["flags"]:
			seen[e["nr_name"][4:]] += 1
	out = os.path.join(workdir(), "strace")
	p = subprocess.run(["strace", "-f", "-o", out, *COMMAND], input="go\n", stdout=subprocess.DEVNULL,
			   stderr=subprocess.PIPE, text=True)
	if not os.path.exists(out) or p.returncode:
		skip_all(f"strace does not work here: {p.stderr.strip()}")
	said = collections.Counter()
	for line in open(out, errors="replace"):
		word = line.split(maxsplit=1)[1]
		name = word.split("(")[0]
		# a call is one line, or begins in one and is resumed in another; a thread's start is no call
		if "(" in word and name.isidentifier() and name not in ("exit_group", "exit"):
			said[name] += 1
	ok("0 lost" in rec.messages, "nothing lost", rec.messages)
	# what the shell did before it waited is in strace's list alone; what runs in parallel meets in pipes as it comes
	calls = {n for n in said if n not in ("read", "write", "wait4", "brk", "mmap", "munmap", "rt_sigreturn", "futex")}
	begin = said_before(out)
	different = {n: (seen[n], said[n] - begin[n]) for n in calls if seen[n] != said[n] - begin[n]}
	ok(not different, f"{sum(seen[n] for n in calls)} calls of {len(calls)} kinds, as many as strace counts", different)
	done()


def said_before(out):
	"""Calls up to the shell's first read, in which the recording finds it."""
	before = collections.Counter()
	for line in open(out, errors="replace"):
		name = line.split(maxsplit=1)[1].split("(")[0]
		if name == "read" and "(0," in line:
			return before
		before[name] += 1
	return before


main()
