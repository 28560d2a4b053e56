#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""sonde and strace count the same number of each system call of a command."""
import collections
import os
import shutil
import subprocess

from recording import Recording, workdir
from tap import done, ok, skip_all

COMMAND = ["/bin/sh", "-c", "read x; find /usr/include -name '*.h' -newer /etc/hostname | sort | tail -n 1"]


def main():
	if not shutil.which("strace"):
		skip_all("strace is not installed")
	rec = Recording(COMMAND, "syscall")
	seen = collections.Counter()
	for e in rec.trace.events("syscall"):
		# strace does not count the call in which the recording found the shell, nor calls that never return
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
		# a call is one line, or is begun in one and resumed in another; the start of a thread is no call
		if "(" in word and name.isidentifier() and name not in ("exit_group", "exit"):
			said[name] += 1
	ok("0 lost" in rec.messages, "no losses", rec.messages)
	# only strace has the shell's calls before it waited; reads and polls of parallel processes on pipes vary
	calls = {n for n in said if n not in ("read", "write", "wait4", "brk", "mmap", "munmap", "rt_sigreturn", "futex")}
	begin = said_before(out)
	different = {n: (seen[n], said[n] - begin[n]) for n in calls if seen[n] != said[n] - begin[n]}
	ok(not different, f"{sum(seen[n] for n in calls)} calls of {len(calls)} kinds, the number that strace counts", different)
	done()


def said_before(out):
	"""The calls up to the shell's first read, in which the recording finds it"""
	before = collections.Counter()
	for line in open(out, errors="replace"):
		name = line.split(maxsplit=1)[1].split("(")[0]
		if name == "read" and "(0," in line:
			return before
		before[name] += 1
	return before


main()
