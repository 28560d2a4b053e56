#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate waits
"""Futex waits, compared with the program's own list: their number, holder, waker and stack."""
import errno
import os

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import EVENT_OPEN, PROBE_NS, Recording, compile_c, counted
from tap import done, ok, skip

ROUNDS, WAITERS = 20, 4
WAIT, PI = 0, 1


def main():
	program = compile_c(os.path.join(HERE, "locks.c"))
	rec = Recording([program], "lock")
	said = [line.split() for line in rec.output]
	waits = rec.of("lock_wait")
	ok("0 lost" in rec.messages, "no losses", rec.messages)

	def lines(word):
		return [s[1:] for s in said if s[0] == word]

	def on(address, tid=None):
		return sorted((w for w in waits if w["lock"] == int(address, 16) and tid in (None, w["tid"])),
			      key=lambda w: w["start"])

	tid, word = lines("plain")[0]
	own = [[int(x, 0) for x in s] for s in lines("wait")]
	mine = [s for s in own if s[0] == int(tid)]
	got = on(word, int(tid))
	ok(len(got) == len(mine) == ROUNDS, f"{ROUNDS} waits of one thread", counted(len(got), ROUNDS))
	ok(all(w["result"] == 0 and (w["waker_pid"], w["waker_tid"]) == (rec.pid, rec.pid) for w in got),
	   "each is woken by the main thread", got[:2])
	ok(all(a <= w["start"] <= w["woken"] <= w["time"] <= b for w, (_, _, a, b, _) in zip(got, mine)),
	   "each is within the program's own times")
	spare = sorted(b - a - (w["time"] - w["start"]) - (b - a) // 100 for w, (_, _, a, b, _) in zip(got, mine))
	ok(spare[len(spare) // 2] <= PROBE_NS, "durations are those of the program's clock within 1% + 2 us (median)",
	   f"beyond 1%: {spare} ns")
	ok(len({w["episode"] for w in got}) == 1, "waits without taking the lock in between are one attempt")

	main_waits = on(word, rec.pid)
	changed = [w for w in main_waits if w["result"] == -errno.EAGAIN]
	timed = [w for w in main_waits if w["result"] == -errno.ETIMEDOUT]
	ok(len(changed) == ROUNDS and len(timed) == ROUNDS and len(main_waits) == 2 * ROUNDS,
	   f"{ROUNDS} refused because of the futex's value, {ROUNDS} timed out", (len(changed), len(timed)))
	ok(not any(w["waker_tid"] or w["woken"] for w in main_waits), "these have no waker")
	ok(all(w["time"] - w["start"] >= 2_000_000 for w in timed), "timed-out waits last for their timeout")

	cut = on(lines("interrupted")[0][0])
	ok(len(cut) == 1 and cut[0]["result"] in (-errno.EINTR, -512) and not cut[0]["waker_tid"],
	   "one wait ended by a signal, without a waker", cut)

	for kind, op in (("normal", WAIT), ("pi", PI), ("robust", WAIT)):
		address = next(s[1] for s in lines("convoy") if s[0] == kind)
		tids = [int(s[1]) for s in lines("waiter") if s[0] == kind]
		first = [on(address, t)[:1] for t in tids]
		ok(all(first) and all(w[0]["owner"] == rec.pid and w[0]["op"] == op for w in first),
		   f"{kind}: each of {WAITERS} waits has the lock's holder as first holder", first[:1])
		last = [on(address, t)[-1] for t in tids if on(address, t)]
		wakers = {w["waker_tid"] for w in last if w["result"] == 0}
		ok(wakers and wakers <= set(tids) | {rec.pid} and rec.pid in
		   {w["waker_tid"] for t in tids for w in on(address, t)}, f"{kind}: the lock is released by the holder or another waiter", wakers)
		ok(all(len({w["episode"] for w in on(address, t)}) == 1 for t in tids), f"{kind}: each thread has one attempt")

	joined = [w for w in waits if w["waker_tid"] == int(lines("join")[0][0])]
	ok(len(joined) == 1 and joined[0]["tid"] == rec.pid, "a wait in pthread_join is ended by the thread's end", joined)
	address, child = lines("shared")[0]
	got = on(address)
	ok(len(got) == 1 and (got[0]["waker_pid"], got[0]["waker_tid"]) == (int(child), int(child)),
	   "one wait ended by another process", got)
	how, address = lines("requeued")[0]
	name = "one wait ended by futex_requeue()"
	got = on(address)
	if how == "by":
		ok([(w["waker_pid"], w["waker_tid"]) for w in got] == [(rec.pid, rec.pid)], name, got)
	else:
		skip(name, "this kernel has no such call")
	tid, address = lines("stuck")[0]
	got = on(address)
	ok(len(got) == 1 and got[0]["result"] == -512 and got[0]["tid"] == int(tid), "one wait cut by the end of its process", got)
	stuck(program)
	done()


def stuck(program):
	rec = Recording([program, "4"], "lock", stop_at="stuck")
	tid, address = next(line.split()[1:] for line in rec.output if line.startswith("stuck"))
	waits = rec.of("lock_wait")
	got = [w for w in waits if w["lock"] == int(address, 16)]
	ok(len(got) == 1 and got[0]["flags"] == EVENT_OPEN and got[0]["tid"] == int(tid), "one wait that outlasts the trace", got)
	# sonde names a call site as it drains its first wait, as long as the process is there
	word = int(next(line.split()[2] for line in rec.output if line.startswith("convoy")), 16)
	sites = {w["tid"]: w["site"] for w in waits if w["lock"] == word}
	names = [n for site in sites.values() for n in names_of(rec, site)]
	ok(len(names) == WAITERS and all(n.startswith("take") for n in names), "the stacks of a convoy have take()", names)


def names_of(rec, address):
	return [e["symbol_text"] for e in rec.trace.events("lock_site")
		if e["pid"] == rec.pid and e["address"] == address]


main()
