#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""The waker of each sleep, the delay until the thread ran, and the state in which it was off the CPU, for a known number of each."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import EVENT_OPEN, SLOW, Recording, compile_c, counted
from spans import (
	BLOCKED,
	DEAD,
	NAMES,
	NEW,
	RUNNABLE,
	SLEEP,
	STOPPED,
	TRACED,
	WAKER_IRQ,
	WAKER_NONE,
	WAKER_SOFTIRQ,
	WAKER_THREAD,
	by_thread,
	gaps,
	merged,
)
from tap import done, ok

MS = 1_000_000
FAMILIES = ("sched", ["--sched=all"])


def said(rec, word):
	return [[int(x) for x in line.split()[1:]] for line in rec.output if line.split()[0] == word]


def between(spans, begin, end):
	return [e for e in spans if "wake" in e and begin <= e["start"] and e["time"] <= end]


def wakers(program):
	times = 100
	rec = Recording([program, "wake", str(times)], *FAMILIES)
	waker, woken, n = said(rec, "wake")[0]
	begin, end = said(rec, "begin")[0][0], said(rec, "end")[0][0]
	threads = by_thread(merged(rec))
	# its first sleep may have begun before the trace
	asleep = [e for e in between(threads[woken], 0, end) if e["state"] == SLEEP and e["time"] >= begin]
	named = [e for e in asleep if (e["waker"], e["waker_pid"], e["waker_tid"]) == (WAKER_THREAD, rec.pid, waker)]
	ok(len(asleep) == len(named) == n, f"woken {n} times, each time with the waker",
	   f"{counted(len(asleep), n)} sleeps, {len(named)} with the waker")
	mine = [e for e in between(threads[waker], begin, end) if e["state"] == SLEEP]
	answered = [e for e in mine if (e["waker"], e["waker_tid"]) == (WAKER_THREAD, woken)]
	# the event of a softirq has the thread that it interrupted
	timer = [e for e in mine if e["waker"] == WAKER_SOFTIRQ or (e["waker"], e["waker_tid"], e["waker_pid"]) == (WAKER_IRQ, 0, 0)]
	# no waker is known if the interrupt was in a task for which the kernel runs no BPF programs
	unseen = [e for e in mine if e["waker"] == WAKER_NONE and not e["waker_tid"] and not e["waker_pid"]]
	others = [(e["waker"], e["waker_pid"], e["waker_tid"]) for e in mine if e not in timer and e not in unseen and e not in answered]
	ok(len(timer) + len(unseen) == n and len(unseen) <= n // 10, f"{n} sleeps ended by the timer, without a thread as waker",
	   f"{len(timer)} by an interrupt, {len(unseen)} by what was not seen, others by (kind, pid, tid) {others} of {rec.pid}, {waker} woken {woken}")
	ok(len(answered) <= n and len(answered) == len(mine) - n, f"{len(answered)} waits for an answer, ended by the answering thread",
	   f"of {len(mine) - n}")
	late = sorted(e["time"] - e["wake"] for e in asleep)
	ok(late[0] >= 0 and all(e["start"] <= e["wake"] for e in asleep), "a thread runs after its wake-up, which is within its sleep",
	   f"least {late[0] / 1000:.1f} us, median {late[n // 2] / 1000:.1f}, most {late[-1] / 1000:.1f}")
	return rec


def states(program):
	times = 20
	rec = Recording([program, "states", str(times)], *FAMILIES)
	begin, end = said(rec, "begin")[0][0], said(rec, "end")[0][0]
	mine = between(by_thread(merged(rec))[rec.pid], begin, end)
	long = [e for e in mine if e["time"] - e["start"] > MS]

	def count(state):
		return sum(e["state"] == state for e in long)

	# waiting for an ended child does not sleep, so that only naps and vforks are certain
	# a thread that is preempted before it sleeps may sleep only for the rest of a millisecond
	blocked = sum(e["state"] == BLOCKED for e in mine)
	ok(count(BLOCKED) <= times <= blocked, f"{times} waits for a vfork are uninterruptible", f"{count(BLOCKED)} long, {blocked} in all")
	naps = [e for e in mine if e["state"] == SLEEP and e["waker"] != WAKER_THREAD]
	ok(len(naps) == times, f"{times} naps are sleep", counted(len(naps), times))
	for word, state in (("stopped", STOPPED), ("traced", TRACED)):
		child, n = said(rec, word)[0]
		offs = [e for e in rec.trace.events("sched_off") if e["tid"] == child]
		got = [e for e in offs if e["state"] == state]
		ok(n == times == len(got), f"{times} stops are {NAMES[state]}", len(got))
		ok(all(e["waker_tid"] == rec.pid for e in got), "continued by the parent")
	rows = [e for e in rec.trace.events("sched_run") if e["pid"] != rec.pid and e["state"] == DEAD]
	ok(len(rows) == times + 2, f"{times + 2} children end with a run", counted(len(rows), times + 2))


def churn(program):
	times = 200
	rec = Recording([program, "churn", str(times)], *FAMILIES)
	tids = [x[0] for x in said(rec, "thread")]
	threads = by_thread(merged(rec))
	whole = [threads.get(t, []) for t in tids]
	ok(len(set(tids)) == times and all(len(w) >= 2 for w in whole), f"{times} threads that started and ended have spans")
	ok(all(w and "wake" in w[0] and w[0]["state"] == NEW and w[0]["waker_tid"] == rec.pid and
	       w[0]["wake"] == w[0]["start"] and not w[0]["flags"] for w in whole), "each begins as new, woken by its parent")
	ok(all(w and "wake" not in w[-1] and w[-1]["state"] == DEAD and not w[-1]["flags"] for w in whole),
	   "each ends with a run of state DEAD")
	bad = [g for w in threads.values() for g in gaps(w)]
	ok(not bad, "the spans in between have no gap", "\n".join(bad[:5]))
	runnable = [e for w in whole for e in w if "wake" in e and e["state"] == RUNNABLE]
	ok(all(e["wake"] == e["start"] and not e["waker_tid"] for e in runnable),
	   f"{len(runnable)} preemptions: runnable throughout, without a waker")
	# the kernel charges by its run queue's clock, which lags if a host takes the CPU away
	more = [e for w in whole for e in w
		if "wake" not in e and e["charged"] > e["time"] - e["start"] + 10 * MS * SLOW + rec.steal]
	ok(not more, "no run is charged more than its duration", more[:3])
	return not [e for w in whole for e in w if e["flags"] & EVENT_OPEN]


def main():
	program = compile_c(os.path.join(HERE, "work.c"))
	wakers(program)
	states(program)
	ok(churn(program), "an ended thread has no open span")
	done()


main()
