# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of lock blame: the true holders of locks while others waited, and those in report `locks`."""
import collections
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))

# waited_at and released_at name the code; with got 0 the thread gave up at `released`
Hold = collections.namedtuple("Hold", "lock tid waited_at released_at asked got released")


def holds_of(output):
	"""Parses the lines "hold LOCK TID WAITED_AT RELEASED_AT ASKED GOT RELEASED" of a program."""
	fields = [s.split()[1:] for s in output if s.startswith("hold ")]
	return [Hold(f[0], int(f[1]), f[2], f[3], *map(int, f[4:])) for f in fields]


def true_blame(holds):
	"""{(waiter, holder): ns}: the part of waits in which another thread held the lock, by the code of both"""
	blame = collections.Counter()
	for lock in {h.lock for h in holds}:
		of = sorted((h for h in holds if h.lock == lock and h.released), key=lambda h: h.got)
		for w in (h for h in holds if h.lock == lock):
			until = w.got
			for h in of:
				if h.got >= until:
					break
				if h.tid != w.tid and h.released > w.asked:
					blame[w.waited_at, h.released_at] += min(h.released, until) - max(h.got, w.asked)
	return blame


def waited(holds, codes):
	"""The ns from a thread's request for a lock until it has it or stops waiting, in this code"""
	return sum(h.got - h.asked for h in holds if h.waited_at in codes)


def tables(trace, *options):
	p = subprocess.run([SONDE, "report", trace, "locks", "--format", "json", *options], capture_output=True, text=True,
			   check=True)
	return json.loads(p.stdout)


def line_of(code):
	"""The line of Python code, "reload (lock_planted.py:65)", else the function: C++ logs these"""
	name, _, place = (code or "?").partition(" (")
	return place.rstrip(")").rpartition(":")[2] if ".py:" in place else name.partition("(")[0]


def seen_blame(report, pid):
	blame = collections.Counter()
	for row in report["tables"]["held"]:
		if row["pid"] == pid:
			blame[line_of(row["waiter"]), line_of(row["holder"])] += row["wait_ns"]
	return blame


def compare(truth, seen):
	"""(share of the true waiting that is attributed to the right code, attributed share in all, largest errors)"""
	total = max(sum(truth.values()), 1)
	right = sum(min(ns, seen[k]) for k, ns in truth.items())
	worst = sorted(((seen[k] - truth[k]) / total, k) for k in set(truth) | set(seen))
	return right / total, sum(seen[k] for k in seen) / total, [worst[0], worst[-1]] if worst else []
