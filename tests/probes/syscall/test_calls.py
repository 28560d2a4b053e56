#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: smoke
"""System calls, compared with the program's own list: order, time, result, file and bytes of each."""
import errno
import os

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import EVENT_OPEN, PROBE_NS, Recording, compile_c, counted, workdir
from tap import done, ok

NO_DURATION = 4
ROUNDS, THREADS = 50, 4
# x86-64
READ, WRITE, CLOSE, PREAD, READV, SENDTO, RECVFROM, OPENAT, NANOSLEEP, GETPPID, GETPRIORITY = \
	0, 1, 3, 17, 19, 44, 45, 257, 35, 110, 140
CONNECT, ACCEPT4, EXECVE, CLONE, FORK, VFORK, EXIT_GROUP = 42, 288, 59, 56, 57, 58, 231
COMPAT_GETPPID = 0x8000 + 64


def listed(rec):
	"""{(thread, call): [(from, to, ret)]} of the program's own list"""
	calls = {}
	for s in (line.split() for line in rec.output):
		if s[0] == "call":
			tid, nr, *rest = map(int, s[1:])
			calls.setdefault((tid, nr), []).append(rest)
	return calls


def grouped(events):
	calls = {}
	for e in sorted(events, key=lambda e: e["start"]):
		calls.setdefault((e["tid"], e["nr"]), []).append(e)
	return calls


def match(own, seen):
	"""The event of each call in the list. The program and its C library may make further calls of the kind."""
	found, missing = [], []
	for key, calls in own.items():
		events = iter(seen.get(key, []))
		for begin, end, ret in calls:
			for e in events:
				if e["start"] >= begin:
					break
			else:
				e = None
			if e and e["time"] <= end and e["ret"] == ret:
				found.append((key, begin, end, ret, e))
			else:
				missing.append((key, begin, end, ret, e))
	return found, missing


def main():
	path = os.path.join(workdir(), "some file")
	program = compile_c(os.path.join(HERE, "calls.c"))
	rec = Recording([program, path], "syscall")
	# the program waits in a read when tracing begins, which the loader finds
	reported = {e["pid"] for e in rec.trace.events("syscall_file")}
	callers = {e["pid"] for e in rec.trace.events("syscall")}
	ok(rec.pid in reported and reported <= callers, "files belong to their processes, also those found at the start",
	   f"{reported} {callers}")
	ok("events of kernel tracepoints" in rec.messages, "the last message has the number of events", rec.messages)
	own, seen = listed(rec), grouped(rec.of("syscall"))
	# On a busy machine mappings of other processes may be missed, which does not affect system calls
	lost = [line for line in rec.messages.splitlines() if line.startswith("sonde: lost ") and "mappings" not in line]
	ok(not lost, "no system call is lost", rec.messages)
	# calls interrupted by a signal have other results, see signals()
	interrupted = {(rec.pid, n): own[rec.pid, n].pop() for n in (READ, READV)}
	refused = own.pop((rec.pid, GETPRIORITY))
	found, missing = match(own, seen)
	total = sum(map(len, own.values()))
	ok(len(found) == total and not missing, f"all {total} calls have their time and result",
	   f"{counted(len(found), total)}: {missing[:3]}")
	ppids = [len(seen[k]) for k in own if k[1] == GETPPID]
	ok(ppids == [10 * ROUNDS] * THREADS, f"{10 * ROUNDS} in each of {THREADS} threads, and no more",
	   f"{counted(sum(ppids), 10 * ROUNDS * THREADS)}: {ppids}")
	ok(not any(e["flags"] for *_, e in found), "no call is marked as incomplete")
	durations(found)
	files(rec, path, found)
	sockets(rec, found)
	signals(rec, interrupted, seen)
	got = seen.get((rec.pid, GETPRIORITY), [])
	ok(len(got) == len(refused) == 10 and all(e["ret"] == -errno.EXDEV and e["flags"] == NO_DURATION for e in got),
	   "10 calls that seccomp refused are recorded without a duration", got[:1])
	compat(rec, seen)
	children(rec)
	done()


def durations(found):
	"""Reading the clock takes as long as a short system call, and a busy machine may preempt the thread in between."""
	naps = [(b - a, e["time"] - e["start"]) for (_, nr), a, b, _, e in found if nr == NANOSLEEP]
	off = [own - seen for own, seen in naps]
	close = [d for (own, _), d in zip(naps, off) if d <= own // 100 + PROBE_NS]
	ok(all(d >= 0 for d in off) and all(seen >= 3_000_000 for _, seen in naps), "a nap's span is within the program's own times",
	   f"{len(close)} of {len(naps)} within 1% + 2 us of the program's clock, at most {max(off) / 1000:.1f} us off")
	ok(2 * len(close) >= len(naps), "most naps agree within 1% + 2 us", f"{len(close)} of {len(naps)}")
	short = sorted(b - a - (e["time"] - e["start"]) for (_, nr), a, b, _, e in found if nr == GETPPID)
	ok(0 <= short[0] and short[len(short) // 2] <= PROBE_NS, "short calls agree within 2 us (median)",
	   f"median {short[len(short) // 2]} ns shorter than by the program's clock")
	slept = [e["sleeps"] for (_, nr), *_, e in found if nr == NANOSLEEP]
	ok(all(slept), "a nap gives up the CPU", slept)
	ok(not any(e["sleeps"] for (_, nr), *_, e in found if nr == GETPPID), "getppid does not")


def files(rec, path, found):
	reported = {e["file"]: e for e in rec.trace.events("syscall_file")}

	def of(nr):
		return [e for (_, n), *_, e in found if n == nr]

	opened = [e for e in of(OPENAT) if e["ret"] >= 0]
	ok(len(opened) == ROUNDS and all(e["path"] == path for e in opened), "opened files have their paths", opened[:1])
	failed = [e["path"] for e in of(OPENAT) if e["ret"] == -errno.ENOENT]
	ok(failed == ["/nowhere/at/all"], "a failed open has its path", failed)
	names = {reported[e["file"]]["path"] for nr in (READ, WRITE, PREAD) for e in of(nr) if e["ret"] >= 0}
	names |= {reported[e["file"]]["path"] for e in opened}
	# paths are from the file system's root, which differs from this test's root in a chroot
	ok(len(names) == 1 and names.pop().endswith(path), "reads and writes have the file", names)
	ok(sorted(e["bytes"] for e in of(WRITE)) == [100] * ROUNDS + [4096] * ROUNDS and
	   sorted(e["bytes"] for e in of(PREAD)) == [4096] * ROUNDS and
	   sorted(e["bytes"] for e in of(READ)) == [0] + [100] * ROUNDS, "bytes")
	ok(all((e["arg2"], e["arg3"]) == (4096, 0) and e["arg1"] and not e["arg4"] for e in of(PREAD)), "arguments")
	st = os.stat(path)
	ok({reported[e["file"]]["ino"] for e in of(PREAD)} == {st.st_ino}, "files have the right inode")
	bad = [e for e in of(CLOSE) + of(READ) if e["ret"] == -errno.EBADF]
	ok(len(bad) == 2 and not any(e["file"] for e in bad), "an invalid descriptor has no file", bad)


def sockets(rec, found):
	reported = {e["file"]: e for e in rec.trace.events("syscall_file")}
	port = next(int(line.split()[1]) for line in rec.output if line.startswith("port"))
	here = 0x0100007f

	def one(nr):
		e, = [e for (_, n), *_, e in found if n == nr]
		return reported[e["file"]]

	for name, nr in (("connect", CONNECT), ("send", SENDTO)):
		f = one(nr)
		ok((f["peer0"], f["peer_port"], f["local0"], f["family"], f["type"]) == (here, port, here, 2, 1),
		   f"{name}: the socket's peer", f)
	f = one(RECVFROM)
	ok((f["local_port"], f["peer_port"]) == (port, one(SENDTO)["local_port"]), "recv: the connection from the other side", f)


def signals(rec, own, seen):
	"""A call interrupted by a signal returns -ERESTARTSYS (-512) within the kernel, which turns it into -EINTR or restarts the call."""
	begin, end, ret = own[rec.pid, READ]
	got = [e for e in seen[rec.pid, READ] if begin <= e["start"] and e["time"] <= end]
	ok(ret == -errno.EINTR and [e["ret"] for e in got] == [-512], "an interrupted read is one call", got)
	begin, end, ret = own[rec.pid, READV]
	got = [e for e in seen[rec.pid, READV] if begin <= e["start"] and e["time"] <= end]
	ok(ret == 1 and [e["ret"] for e in got] == [-512, 1], "a read that is restarted after the signal is two calls", got)


def compat(rec, seen):
	parent = next((int(line.split()[1]) for line in rec.output if line.startswith("compat")), None)
	got = seen.get((rec.pid, COMPAT_GETPPID), [])
	ok(len(got) == 10 and all(e["ret"] == parent and e["nr_name"] == "SYS32_getppid" for e in got),
	   "10 32-bit calls have their own number", got[:1])


def children(rec):
	every = list(rec.trace.events("syscall"))
	pids = dict(line.split()[1:] for line in rec.output if line.startswith("child"))
	calls = {kind: sorted((e for e in every if e["pid"] == int(pid)), key=lambda e: e["start"])
		 for kind, pid in pids.items()}
	for kind, events in calls.items():
		last = events[-1]
		ok(last["nr"] == EXIT_GROUP and last["flags"] == EVENT_OPEN and last["arg0"] == 7,
		   f"{kind}: a child's last call is the exit, which does not return", last)
		ok(not any(e["nr"] in (CLONE, FORK, VFORK) for e in events), f"{kind}: the child made no child")
	execs = [e for e in calls["exec"] if e["nr"] == EXECVE]
	ok(len(execs) == 1 and execs[0]["ret"] == 0 and execs[0]["path"].endswith("/calls"),
	   "exec returns in the new program and has its path", execs)
	mine = [e for e in every if e["pid"] == rec.pid and e["nr"] in (CLONE, FORK, VFORK) and e["ret"] in map(int, pids.values())]
	ok(len(mine) == 3, "each child was made by one call", mine)


main()
