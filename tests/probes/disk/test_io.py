#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: brief
"""Known reads and writes of a file on a real disk: each request, fault and cache miss against the program's own list,
the file's place on the disk (FIEMAP) and what the kernel counted for the process (/proc/PID/io, getrusage)."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from recording import PROBE_NS, Recording, compile_c, workdir
from tap import done, ok, skip, skip_all

READ, WRITE, FLUSH, DISCARD = range(4)
CACHE, CALL, METADATA, MAPPING = range(1, 5)
SYNC, META, FUA, PREFLUSH, READAHEAD = 1, 2, 4, 8, 16
OPEN, NOT_SEEN = 1, 2
LOSS_RETURN = 5
TRIES = 5
PAGE = 4096


def has_requests(path):
	"""Does the file system lie on one disk that takes requests?"""
	dev = os.stat(path).st_dev
	link = f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}"
	if not os.path.exists(link):
		return False
	disk = link if os.path.exists(link + "/queue") else os.path.join(link, "..")
	return os.path.exists(disk + "/mq") and bool(os.listdir(disk + "/mq"))


def start_of(dev):
	"""Where a partition begins, sectors."""
	try:
		with open(f"/sys/dev/block/{dev >> 20}:{dev & 0xfffff}/start") as f:
			return int(f.read())
	except OSError:
		return 0


class KernelTrace:
	"""What the kernel's own trace buffer has of block I/O meanwhile: [(event, ns, sector, sectors)], in microseconds."""

	EVENTS = ("block_bio_queue", "block_rq_issue", "block_rq_complete")
	LINE = re.compile(r"\s(\d+)\.(\d{6}): (block_\w+): .* (\d+) \+ (\d+) ")

	def __init__(self):
		base = next((m.split()[1] for m in open("/proc/mounts") if m.split()[2] == "tracefs"), None)
		self.events, self.where = [], base and os.path.join(base, "instances", f"sonde-test-{os.getpid()}")

	def write(self, name, text):
		with open(os.path.join(self.where, name), "w") as f:
			f.write(text)

	def __enter__(self):
		try:
			os.mkdir(self.where or "")
			self.write("trace_clock", "mono")
			self.write("buffer_size_kb", "8192")
			for e in self.EVENTS:
				self.write(f"events/block/{e}/enable", "1")
		except OSError:
			self.where = None
		return self

	def __exit__(self, *_):
		if not self.where:
			return
		self.write("tracing_on", "0")
		with open(os.path.join(self.where, "trace")) as f:
			found = [self.LINE.search(line) for line in f]
		self.events = [(m[3], int(m[1]) * 10**9 + int(m[2]) * 1000, int(m[4]), int(m[5])) for m in found if m]
		os.rmdir(self.where)

	def nearest(self, event, sector, time):
		"""
		ns from this time to that of the kernel's record of such an event that is nearest to it; what is too large for
		the device is queued once and issued in pieces
		"""
		return min((abs(t - time) for e, t, s, n in self.events
			    if e == event and (s == sector or e == "block_bio_queue" and s < sector < s + n)), default=10**9)

	def completed(self, e):
		"""Has the kernel a completion of this request, between its issue and the moment that sonde found it ended?"""
		return any(name == "block_rq_complete" and s == e["sector"] and e["issued"] - 1000 <= t <= e["time"]
			   for name, t, s, _ in self.events)


class Run:
	"""
	One mode of the program, recorded alone. A kernel may not run BPF programs in some interrupts (docs/disk.md): what had
	such a completion has to be reported as a loss, request by request, and then all is done again; what is judged is exact.
	"""

	def __init__(self, program, mode, families="disk", options=()):
		self.not_seen, unreported = [], []
		for _ in range(TRIES):
			self.rec = rec = Recording([program, os.path.join(workdir(), "data"), mode], families, options)
			not_seen = [e for e in rec.trace.events("disk_io") if e["flags"] & NOT_SEEN]
			reported = sum(e["count"] for e in rec.trace.events("meta_loss") if e["reason"] == LOSS_RETURN)
			if reported != len(not_seen):
				unreported.append((reported, not_seen))
			self.not_seen += not_seen
			if not not_seen:
				break
		ok(not unreported, f"{mode}: {len(self.not_seen)} completions that were not seen, each reported as a loss", unreported or "")
		lines = [line.split() for line in rec.output]
		self.dev, self.ino = [int(x) for x in next(row for row in lines if row[0] == "file")[1:]]
		self.extents = [[int(x) for x in row[1:]] for row in lines if row[0] == "extent"]
		self.ops = [(row[1], *[int(x) for x in row[2:]]) for row in lines if row[0] == "op"]
		self.addresses = [int(row[1]) for row in lines if row[0] == "address"]
		self.read, self.written, self.major = [int(x) for x in next(row for row in lines if row[0] == "counted")[2:]]
		self.start = start_of(self.dev)
		self.ios = rec.of("disk_io")
		ok(rec.status == 0 and " 0 lost" in rec.messages, f"{mode}: recorded without loss", rec.messages)
		# the file's end makes discards on some file systems, for which no thread waits
		still = [e for e in self.ios if e["flags"] & OPEN and e["op"] != DISCARD]
		ok(not still, f"{mode}: every request has ended", still)

	def mine(self, op):
		return [e for e in self.ios if e["op"] == op and (e["dev"], e["ino"]) == (self.dev, self.ino) and
				not e["traits"] & META]

	def offset(self, sector):
		"""In the file, of a sector of the disk; None: not the file's"""
		for logical, first, size in self.extents:
			at = (sector - self.start - first) * 512
			if 0 <= at < size:
				return logical + at
		return None

	def covered(self, ios):
		"""{offset: times} of the file's pages that the requests touch"""
		pages = {}
		for e in ios:
			for at in range(0, e["bytes"], PAGE):
				offset = self.offset(e["sector"] + at // 512)
				pages[offset] = pages.get(offset, 0) + 1
		return pages


def agree(kernel, ios):
	"""
	The truth of a request's times is the kernel's own trace of it: microseconds, and an interrupt may come between the
	two that look. The program's clock around the call is no such truth: the way down and the wake-up are in it.
	"""
	name = "queued, issued and completed when the kernel's own trace says, within 2 us"
	if not kernel.where:
		return skip(name, "tracefs with instances is not there")
	off = {field: sorted(kernel.nearest(event, e["sector"], e[field]) for e in ios)
	       for field, event in (("start", "block_bio_queue"), ("issued", "block_rq_issue"), ("time", "block_rq_complete"))}
	ok(all(d[len(d) * 3 // 4] <= PROBE_NS + 1000 for d in off.values()), name, {k: (d[len(d) // 2], d[-1]) for k, d in off.items()})
	return None


def in_calls(program):
	"""With the calls and the scheduler recorded too: the call is as long as by the program's clock, and waits for its request."""
	r = Run(program, "direct", "disk,syscall,sched", ("--sched=all",))
	calls, offs = r.rec.of("syscall"), r.rec.of("sched_off")
	long, early, gaps = [], [], []
	for word, offset, size, begin, end in r.ops:
		op = READ if word == "direct-read" else WRITE
		call = next((e for e in calls if begin <= e["start"] and e["time"] <= end and e["arg2"] == size), None)
		ios = [e for e in r.mine(op) if begin <= e["start"] and e["time"] <= end]
		if not call or not ios:
			early.append((word, offset, call))
			continue
		long.append((end - begin - (call["time"] - call["start"])) - (end - begin) // 100)
		off = [e for e in offs if call["start"] <= e["start"] and e["time"] <= call["time"]]
		last = max(e["time"] for e in ios)
		inside = all(call["start"] <= e["start"] and e["time"] <= call["time"] for e in ios)
		# it slept in the call until its request was done; one that was done at once needs no sleep
		if not inside or (call["sleeps"] and not any(e["state"] == 2 and e["start"] <= last <= e["time"] for e in off)):
			early.append((word, offset, call, ios, off))
		gaps += [e["wake"] - last for e in off if e["start"] <= last <= e["time"]]
	ok(not early, "each call holds its requests, and the time off the CPU that ends with the last of them", early[:1])
	ok(sorted(long)[len(long) // 2] <= PROBE_NS, "a call is as long as by the program's clock, within 1% + 2 us (median)", sorted(long))
	said = json.loads(subprocess.run([os.environ.get("SONDE", "build/sonde"), "report", r.rec.path, "osrt", "--format", "json"],
					 capture_output=True, text=True, check=True).stdout)["tables"]["summary"]
	for name, nr in (("pread64", 17), ("pwrite64", 18)):
		mine = [e for e in calls if e["nr"] == nr and not e["flags"]]
		off = sum(max(0, min(o["time"], e["time"]) - max(o["start"], e["start"])) for e in mine for o in offs)
		reported = [row["off_cpu_ns"] for row in said if row["name"] == name]
		ok(off and reported == [off], f"osrt: time off the CPU inside of {name} is the scheduler's, to the nanosecond", (reported, off))
	print(f"# from a request's completion to the wake-up of its thread: {sorted(gaps)} ns")


def direct(program):
	with KernelTrace() as kernel:
		r = Run(program, "direct")
	agree(kernel, r.mine(READ) + r.mine(WRITE))
	if kernel.where:
		wrong = [e for e in r.not_seen if not kernel.completed(e)]
		ok(not wrong, f"what {len(r.not_seen)} records say to have ended unseen had, by the kernel's own trace", wrong[:1])
	for word, op in (("direct-write", WRITE), ("direct-read", READ)):
		wrong, margins = [], []
		listed = [o for o in r.ops if o[0] == word]
		for _, offset, size, begin, end in listed:
			ios = [e for e in r.mine(op) if begin <= e["start"] and e["time"] <= end]
			if r.covered(ios) != dict.fromkeys(range(offset, offset + size, PAGE), 1):
				wrong.append((offset, size, ios))
			elif ios:
				margins.append((end - begin) - (max(e["time"] for e in ios) - min(e["start"] for e in ios)))
		ok(not wrong, f"{len(listed)} times {word}: each one's bytes and sectors, inside of the call", wrong[:1])
		ok(sum(e["bytes"] for e in r.mine(op)) == sum(o[2] for o in listed), f"{word}: and no byte more")
		print(f"# a call took longer than its requests by {sorted(margins)} ns")
	ios = r.mine(READ) + r.mine(WRITE)
	ok(all(e["file_from"] == CALL for e in ios), "the file is the system call's")
	ok(all(e["start"] <= e["issued"] <= e["time"] for e in ios), "queued, issued, completed in this order")
	ok(all((e["status"], e["asker"], e["tid"]) == (0, 0, r.rec.pid) for e in ios), "done, for the process itself")
	ok(r.read == sum(e["bytes"] for e in r.mine(READ)) and r.written == sum(e["bytes"] for e in r.mine(WRITE)),
	   f"the kernel counted as much: {r.read} read, {r.written} written")
	names = {(e["dev"], e["ino"]): e["path"] for e in r.rec.of("disk_file")}
	path = os.path.join(workdir(), "data")
	ok(path.endswith(names.get((r.dev, r.ino), "?").rsplit("/", 1)[-1]) and (r.dev, r.ino) in names, "the file is named", names)
	disks = {e["disk"] for e in ios}
	ok(all(os.path.exists(f"/sys/block/{d}") for d in disks) and len(disks) == 1, f"the disk is {disks}")


def borrowed(program):
	r = Run(program, "borrowed")
	_, offset, size, begin, end = next(o for o in r.ops if o[0] == "borrowed")
	ios = [e for e in r.ios if begin <= e["start"] and e["time"] <= end and e["op"] == WRITE]
	ok(ios and {(e["dev"], e["ino"], e["file_from"]) for e in ios} == {(r.dev, r.ino, CALL)} and
	   r.covered(ios) == {offset: 1}, "O_DIRECT from another file's mapped page is this file's, not the other's", ios)


def buffered(program):
	for _ in range(5):
		r = Run(program, "buffered")
		_, offset, size, begin, end = next(o for o in r.ops if o[0] == "fsync")
		ios = [e for e in r.mine(WRITE) if e["file_from"] == CACHE]
		# if a program synced the file system meanwhile, a thread of the kernel wrote a part
		if sum(e["bytes"] for e in ios) == size:
			break
	ok(r.covered(ios) == dict.fromkeys(range(offset, offset + size, PAGE), 1),
	   "fsync writes what was written, each page once", [(e["sector"], e["bytes"]) for e in ios])
	early = [e for e in ios if e["start"] < begin or e["time"] > end]
	ok(not early, "all of it inside of fsync", early)
	ok(all(begin <= e["start"] and e["time"] <= end and e["bytes"] == 0 for e in r.ios if e["op"] == FLUSH),
	   f"{len([e for e in r.ios if e['op'] == FLUSH])} flushes, inside of it too")
	caches = [e for e in r.rec.of("disk_cache") if (e["dev"], e["ino"]) == (r.dev, r.ino)]
	ok(sum(e["written"] for e in caches) == size and not sum(e["missed"] for e in caches),
	   f"{size} bytes entered the cache by a write, none was missed", caches)


def cold(program):
	r = Run(program, "cold")
	_, offset, size, begin, end = next(o for o in r.ops if o[0] == "cold-read")
	ios = [e for e in r.mine(READ) if e["file_from"] == CACHE]
	ok(r.covered(ios) == dict.fromkeys(range(offset, offset + size, PAGE), 1), "a cold file is read, each page once")
	ok(all(begin <= e["start"] for e in ios), "none before it was asked for")
	ok([e for e in ios if e["traits"] & READAHEAD], "some of it ahead")
	caches = [e for e in r.rec.of("disk_cache") if (e["dev"], e["ino"]) == (r.dev, r.ino)]
	ok(sum(e["missed"] for e in caches) == size and not sum(e["written"] for e in caches),
	   f"{size} bytes were missed in the cache", caches)
	ok(r.read == sum(e["bytes"] for e in r.ios if e["op"] == READ), f"the kernel counted {r.read} bytes too")
	task = list(r.rec.of("disk_task"))
	ok(len(task) == 1 and task[0]["read"] == r.read, "and its count is in the trace", task)


def faults(program):
	r = Run(program, "faults")
	events = r.rec.of("disk_fault")
	listed = [o for o in r.ops if o[0] == "fault"]
	mine = [e for e in events if (e["dev"], e["ino"]) == (r.dev, r.ino)]
	got = [(e["address"], e["offset"]) for e in mine]
	ok(got == [(a, o[1]) for a, o in zip(r.addresses, listed)],
	   f"{len(listed)} major faults, each with its address, file and offset", got[:3])
	ok(len(events) == r.major, f"as many as getrusage has: {r.major}", len(events))
	pairs = list(zip(mine, listed))
	ok(all(o[3] <= e["start"] < e["time"] <= o[4] and not e["flags"] for e, o in pairs), "inside of the touch that made it")
	ios = r.mine(READ)
	inside = [any(e["start"] <= io["start"] and io["time"] <= e["time"] for io in ios) for e in mine]
	ok(all(inside), "each waits for a read that lies inside of it")
	late = sorted(o[4] - o[3] - (e["time"] - e["start"]) for e, o in pairs)
	print(f"# the touch took longer than the fault by {late[0]} to {late[-1]} ns, median {late[len(late) // 2]}")
	task = r.rec.of("disk_task")
	ok(len(task) == 1 and task[0]["major"] == r.major and task[0]["minor"] > 0, "the thread's counts", task)


def main():
	if not has_requests(workdir()):
		skip_all(f"{workdir()} does not lie on a disk with requests")
	program = compile_c(os.path.join(HERE, "io.c"))
	for test in (direct, in_calls, borrowed, buffered, cold, faults):
		if test.__name__ in (sys.argv[1:] or test.__name__):
			test(program)
	done()


main()
