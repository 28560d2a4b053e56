#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Known reads and writes of a file on a real disk: compares each request, fault and cache miss with the program's list, the
file's extents (FIEMAP) and the kernel's counters of the process (/proc/PID/io, getrusage)."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import PROBE_NS, Recording, compile_c, workdir
from sonde_cli import tables
from tap import done, ok, skip, skip_all

READ, WRITE, FLUSH, DISCARD = range(4)
CACHE, CALL, METADATA, MAPPING = range(1, 5)
SYNC, META, FUA, PREFLUSH, READAHEAD = 1, 2, 4, 8, 16
OPEN, NOT_SEEN = 1, 2
LOSS_RETURN = 5
TRIES = 5
PAGE = 4096


def has_requests(path):
	"""True if the file system is on one disk that handles block requests"""
	dev = os.stat(path).st_dev
	link = f"/sys/dev/block/{os.major(dev)}:{os.minor(dev)}"
	if not os.path.exists(link):
		return False
	disk = link if os.path.exists(link + "/queue") else os.path.join(link, "..")
	return os.path.exists(disk + "/mq") and bool(os.listdir(disk + "/mq"))


def start_of(dev):
	"""The first sector of a partition"""
	try:
		with open(f"/sys/dev/block/{dev >> 20}:{dev & 0xfffff}/start") as f:
			return int(f.read())
	except OSError:
		return 0


class KernelTrace:
	"""The events of block I/O in the kernel's own trace buffer: [(event, ns, sector, sectors)], with a resolution of 1 us."""

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
		with open(os.path.join(self.where, "trace"), errors="replace") as f:  # names of threads may be any bytes
			found = [self.LINE.search(line) for line in f]
		self.events = [(m[3], int(m[1]) * 10**9 + int(m[2]) * 1000, int(m[4]), int(m[5])) for m in found if m]
		os.rmdir(self.where)

	def nearest(self, event, sector, time):
		"""
		The ns between this time and the nearest such event of the kernel's. A request that is too large for the device
		is queued once and issued in parts.
		"""
		return min((abs(t - time) for e, t, s, n in self.events
			    if e == event and (s == sector or e == "block_bio_queue" and s < sector < s + n)), default=10**9)

	def completed(self, e):
		"""True if the kernel's trace has a completion of this request, between its issue and the time at which sonde found it ended"""
		return any(name == "block_rq_complete" and s == e["sector"] and e["issued"] - 1000 <= t <= e["time"]
			   for name, t, s, _ in self.events)


class Run:
	"""
	A recording of one mode of the program. A kernel may not run BPF programs in some interrupts (docs/disk.md): each request
	whose completion was missed must be reported as a loss, and the recording is repeated until none was missed.
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
		ok(not unreported, f"{mode}: {len(self.not_seen)} completions were missed, each reported as a loss", unreported or "")
		lines = [line.split() for line in rec.output]
		self.dev, self.ino = [int(x) for x in next(row for row in lines if row[0] == "file")[1:]]
		self.extents = [[int(x) for x in row[1:]] for row in lines if row[0] == "extent"]
		self.ops = [(row[1], *[int(x) for x in row[2:]]) for row in lines if row[0] == "op"]
		self.addresses = [int(row[1]) for row in lines if row[0] == "address"]
		self.read, self.written, self.major = [int(x) for x in next(row for row in lines if row[0] == "counted")[2:]]
		self.start = start_of(self.dev)
		self.ios = rec.of("disk_io")
		ok(rec.status == 0 and " 0 lost" in rec.messages, f"{mode}: recorded without losses", rec.messages)
		# deleting the file causes discards on some file systems, which no thread waits for
		still = [e for e in self.ios if e["flags"] & OPEN and e["op"] != DISCARD]
		ok(not still, f"{mode}: every request has ended", still)

	def mine(self, op):
		return [e for e in self.ios if e["op"] == op and (e["dev"], e["ino"]) == (self.dev, self.ino) and
				not e["traits"] & META]

	def offset(self, sector):
		"""The file offset of a sector of the disk, or None"""
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
	Compares a request's times with the kernel's own trace, which has a resolution of 1 us. An interrupt may come between the two.
	The program's clock can't be used, as the time of a call includes the entry into the kernel and the wake-up.
	"""
	name = "requests are queued, issued and completed at the times of the kernel's trace, within 2 us"
	if not kernel.where:
		return skip(name, "there is no tracefs with instances")
	off = {field: sorted(kernel.nearest(event, e["sector"], e[field]) for e in ios)
	       for field, event in (("start", "block_bio_queue"), ("issued", "block_rq_issue"), ("time", "block_rq_complete"))}
	ok(all(d[len(d) * 3 // 4] <= PROBE_NS + 1000 for d in off.values()), name, {k: (d[len(d) // 2], d[-1]) for k, d in off.items()})
	return None


def in_calls(program):
	"""Records system calls and the scheduler too: a call's duration is that of the program's clock, and it waits for its request."""
	# on a fast disk a request may complete before its thread sleeps: until it slept in reads and in writes
	for _ in range(8):
		r = Run(program, "direct", "disk,syscall,sched", ("--sched=all",))
		calls, offs = r.rec.of("syscall"), r.rec.of("sched_off")
		if {17, 18} <= {e["nr"] for e in calls if e["sleeps"] and not e["flags"]}:
			break
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
		# the thread slept until it was woken after its request had completed, unless that completed at once
		if not inside or (call["sleeps"] and not any(e["state"] == 2 and last <= e["time"] for e in off)):
			early.append((word, offset, call, ios, off))
		gaps += [e["wake"] - last for e in off if e["start"] <= last <= e["time"]]
	ok(not early, "each call contains its requests, and the off-CPU time that ends with the last request", early[:1])
	ok(sorted(long)[len(long) // 2] <= PROBE_NS, "a call's duration is that of the program's clock within 1% + 2 us (median)", sorted(long))
	said = tables("report", r.rec.path, "osrt")["summary"]
	for name, nr in (("pread64", 17), ("pwrite64", 18)):
		mine = [e for e in calls if e["nr"] == nr and not e["flags"]]
		off = sum(max(0, min(o["time"], e["time"]) - max(o["start"], e["start"])) for e in mine for o in offs)
		reported = [row["off_cpu_ns"] for row in said if row["name"] == name]
		ok(off and reported == [off], f"osrt: the off-CPU time within {name} is the scheduler's, to the nanosecond", (reported, off))
	print(f"# from a request's completion to the wake-up of its thread: {sorted(gaps)} ns")


def direct(program):
	with KernelTrace() as kernel:
		r = Run(program, "direct")
	agree(kernel, r.mine(READ) + r.mine(WRITE))
	if kernel.where:
		wrong = [e for e in r.not_seen if not kernel.completed(e)]
		ok(not wrong, f"the kernel's trace has the {len(r.not_seen)} completions that were missed", wrong[:1])
	for word, op in (("direct-write", WRITE), ("direct-read", READ)):
		wrong, margins = [], []
		listed = [o for o in r.ops if o[0] == word]
		for _, offset, size, begin, end in listed:
			ios = [e for e in r.mine(op) if begin <= e["start"] and e["time"] <= end]
			if r.covered(ios) != dict.fromkeys(range(offset, offset + size, PAGE), 1):
				wrong.append((offset, size, ios))
			elif ios:
				margins.append((end - begin) - (max(e["time"] for e in ios) - min(e["start"] for e in ios)))
		ok(not wrong, f"{len(listed)} times {word}: the bytes and sectors of each, within the call", wrong[:1])
		ok(sum(e["bytes"] for e in r.mine(op)) == sum(o[2] for o in listed), f"{word}: no further bytes")
		print(f"# a call took longer than its requests by {sorted(margins)} ns")
	ios = r.mine(READ) + r.mine(WRITE)
	ok(all(e["file_from"] == CALL for e in ios), "the file is that of the system call")
	ok(all(e["start"] <= e["issued"] <= e["time"] for e in ios), "requests are queued, issued and completed in this order")
	ok(all((e["status"], e["asker"], e["tid"]) == (0, 0, r.rec.pid) for e in ios), "requests are complete and belong to the process")
	ok(r.read == sum(e["bytes"] for e in r.mine(READ)) and r.written == sum(e["bytes"] for e in r.mine(WRITE)),
	   f"the kernel's counters agree: {r.read} read, {r.written} written")
	names = {(e["dev"], e["ino"]): e["path"] for e in r.rec.of("disk_file")}
	path = os.path.join(workdir(), "data")
	ok(path.endswith(names.get((r.dev, r.ino), "?").rsplit("/", 1)[-1]) and (r.dev, r.ino) in names, "the file has its name", names)
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
		# a kernel thread wrote a part if another program synced the file system
		if sum(e["bytes"] for e in ios) == size:
			break
	ok(r.covered(ios) == dict.fromkeys(range(offset, offset + size, PAGE), 1),
	   "fsync writes the written pages, each once", [(e["sector"], e["bytes"]) for e in ios])
	early = [e for e in ios if e["start"] < begin or e["time"] > end]
	ok(not early, "all writes are within fsync", early)
	ok(all(begin <= e["start"] and e["time"] <= end and e["bytes"] == 0 for e in r.ios if e["op"] == FLUSH),
	   f"{len([e for e in r.ios if e['op'] == FLUSH])} flushes are within fsync")
	caches = [e for e in r.rec.of("disk_cache") if (e["dev"], e["ino"]) == (r.dev, r.ino)]
	ok(sum(e["written"] for e in caches) == size and not sum(e["missed"] for e in caches),
	   f"{size} bytes entered the page cache by a write, without a cache miss", caches)


def cold(program):
	r = Run(program, "cold")
	_, offset, size, begin, end = next(o for o in r.ops if o[0] == "cold-read")
	ios = [e for e in r.mine(READ) if e["file_from"] == CACHE]
	ok(r.covered(ios) == dict.fromkeys(range(offset, offset + size, PAGE), 1), "an uncached file is read, each page once")
	ok(all(begin <= e["start"] for e in ios), "no read precedes its request")
	ok([e for e in ios if e["traits"] & READAHEAD], "some reads are readahead")
	caches = [e for e in r.rec.of("disk_cache") if (e["dev"], e["ino"]) == (r.dev, r.ino)]
	ok(sum(e["missed"] for e in caches) == size and not sum(e["written"] for e in caches),
	   f"{size} bytes missed the page cache", caches)
	ok(r.read == sum(e["bytes"] for e in r.ios if e["op"] == READ), f"the kernel's counter agrees: {r.read} bytes")
	task = list(r.rec.of("disk_task"))
	ok(len(task) == 1 and task[0]["read"] == r.read, "the trace has the kernel's counter", task)


def faults(program):
	r = Run(program, "faults")
	events = r.rec.of("disk_fault")
	listed = [o for o in r.ops if o[0] == "fault"]
	mine = [e for e in events if (e["dev"], e["ino"]) == (r.dev, r.ino)]
	got = [(e["address"], e["offset"]) for e in mine]
	ok(got == [(a, o[1]) for a, o in zip(r.addresses, listed)],
	   f"{len(listed)} major faults, each with its address, file and offset", got[:3])
	ok(len(events) == r.major, f"getrusage has the same number: {r.major}", len(events))
	pairs = list(zip(mine, listed))
	ok(all(o[3] <= e["start"] < e["time"] <= o[4] and not e["flags"] for e, o in pairs), "each is within the access that caused it")
	ios = r.mine(READ)
	inside = [any(e["start"] <= io["start"] and io["time"] <= e["time"] for io in ios) for e in mine]
	ok(all(inside), "each waits for a read within it")
	late = sorted(o[4] - o[3] - (e["time"] - e["start"]) for e, o in pairs)
	print(f"# the touch took longer than the fault by {late[0]} to {late[-1]} ns, median {late[len(late) // 2]}")
	task = r.rec.of("disk_task")
	ok(len(task) == 1 and task[0]["major"] == r.major and task[0]["minor"] > 0, "the thread's counters", task)


def main():
	if not has_requests(workdir()):
		skip_all(f"{workdir()} is not on a disk with requests")
	program = compile_c(os.path.join(HERE, "io.c"))
	for test in (direct, in_calls, borrowed, buffered, cold, faults):
		if test.__name__ in (sys.argv[1:] or test.__name__):
			test(program)
	done()


main()
