# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the sched tests: the on-CPU and off-CPU spans of each thread as one sequence."""

RUNNABLE, SLEEP, BLOCKED, STOPPED, TRACED, DEAD = range(6)
NEW = 9
NAMES = ["RUNNABLE", "SLEEP", "BLOCKED", "STOPPED", "TRACED", "DEAD", "PARKED", "IDLE", "FROZEN", "NEW", "OTHER"]
WAKER_NONE, WAKER_THREAD, WAKER_SOFTIRQ, WAKER_IRQ = range(4)


def merged(rec):
	return sorted(rec.of("sched_run") + rec.of("sched_off"), key=lambda e: (e["start"], e["time"]))


def by_thread(spans):
	threads = {}
	for e in spans:
		threads.setdefault(e["tid"], []).append(e)
	return threads


def gaps(spans):
	"""The times at which a thread's spans leave a gap or overlap, as text"""
	found = []
	for a, b in zip(spans, spans[1:]):
		if a["time"] != b["start"]:
			found.append(f"thread {a['tid']}: {a['time']} then {b['start']} ({b['start'] - a['time']} ns)")
		elif ("wake" in a) == ("wake" in b):
			found.append(f"thread {a['tid']}: two {'off' if 'wake' in a else 'on'} spans in a row at {a['time']}")
		elif "wake" in b and a["state"] != b["state"]:
			found.append(f"thread {a['tid']}: left as {a['state']}, was off as {b['state']}")
	return found
