#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240
"""Report `locks` names the code that held the locks for which other code waited. The programs log their own holds."""
import collections
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "gil"))
sys.path.insert(0, HERE)
import gil_lib
from blame_lib import compare, holds_of, seen_blame, tables, true_blame, waited
from recording import Recording, workdir
from tap import done, ok, skip

PROGRAM = os.path.join(HERE, "lock_planted.py")
FLAGS = ["--off-cpu=100000", "-F", "199"]
FAMILIES = "proc,sched,sample"


def build_extension(folder):
	include = "-I" + sysconfig.get_paths()["include"]
	if not os.path.exists(include[2:] + "/Python.h"):
		include = "-I/usr/include/python3.11"
	subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", "-D_GNU_SOURCE", include,
			os.path.join(HERE, "built", "lock_hold.c"), "-o", os.path.join(folder, "lock_hold.so")],
		       check=True, timeout=60)


def record(python, folder, modes, seconds="0.8", families=FAMILIES):
	program, at = [python.exe, "-S", PROGRAM, folder], None
	if python.root != "/":
		at = tempfile.mkdtemp(dir=os.path.join(python.root, "tmp"))
		os.chmod(at, 0o755)
		for name in (PROGRAM, os.path.join(folder, "lock_hold.so")):
			shutil.copy(name, at)
		inside = at[len(python.root.rstrip("/")):]
		program = ["chroot", python.root, python.exe, "-S", inside + "/lock_planted.py", inside]
	try:
		rec = Recording([*gil_lib.REALTIME, *program, seconds, *modes], families, FLAGS)
	finally:
		if at:
			shutil.rmtree(at)
	return rec


def judge(name, rec, locks, part=0.95):
	"""
	Checks that this share of the waiting for these locks is attributed to the right code, and in all no more than the threads waited:
	also while a lock is handed over, when no thread holds it.
	"""
	holds = [h for h in holds_of(rec.output) if h.lock in locks]
	truth, seen = true_blame(holds), seen_blame(tables(rec.path), rec.pid)
	codes = {h.waited_at for h in holds}
	right, total, worst = compare(truth, collections.Counter({k: ns for k, ns in seen.items() if k[0] in codes}))
	ok(right >= part, f"{name}: {100 * part:.0f}% of the waiting is attributed to the right holder and line",
	   f"{100 * right:.1f}% of {sum(truth.values()) / 1e9:.2f} s in {len(holds)} holds; {worst}")
	ok(total * sum(truth.values()) <= waited(holds, codes), f"{name}: not more than the true waiting is attributed", f"{100 * total:.1f}%",
	   waited(holds, codes) / 1e9)


def each_version(folder):
	for python in sorted(gil_lib.pythons()[0].values()):
		rec = record(python, folder, ["ext", "lock"])
		judge(python.name, rec, ("ext", "lock"))
	for name, why in sorted(gil_lib.pythons()[1].items()):
		skip(name, why)


def of_one_version(folder, python):
	"""Checks that don't depend on the version."""
	rec = record(python, folder, ["convoy"])
	judge("ten threads in a convoy", rec, ("convoy",))
	rec = record(python, folder, ["rlock", "timeout"])
	judge("an RLock", rec, ("rlock",))
	# a release without waiters is not recorded
	judge("waits with a timeout", rec, ("timeout",), 0.8)
	chain(record(python, folder, ["chain"]))
	rec = record(python, folder, ["condition", "calm"])
	report = tables(rec.path)
	held = sum(row["wait_ns"] for row in report["tables"]["held"])
	kinds = collections.Counter()
	for row in report["tables"]["signalled"]:
		if "consumer" in (row["waiter"] or ""):
			kinds[row["kind"]] += row["wait_ns"]
	ok(held < 20e6, "waits for a condition, and locks without waiters, are not waits for locks", f"{held / 1e6} ms")
	ok(kinds.get("condition", 0) > 1e9, "they are waits for a condition", kinds)
	idle(record(python, folder, ["idle"]))


def chain(rec):
	judge("a chain's inner lock", rec, ("inner",))
	rows = [row for row in tables(rec.path)["tables"]["held"] if (row["waiter"] or "").startswith("handle")]
	waited = sum(row["wait_ns"] for row in rows)
	followed = sum(row["wait_ns"] for row in rows if row["holder"].startswith("middle") and
		       (row["chain_end"] or "").startswith("reload"))
	ok(followed > 0.9 * waited > 0, "a wait for a thread that waits itself is attributed to the end of the chain",
	   f"{followed / 1e6} of {waited / 1e6} ms")
	slept = [row for row in rows if (row["chain_end"] or "").startswith("reload")]
	ok(slept and "slept" in slept[0]["activity"] and slept[0]["activity_percent"] > 80,
	   "the activity of the thread at the end of the chain is named", slept[:1])


def idle(rec):
	report = tables(rec.path)
	held = sum(row["wait_ns"] for row in report["tables"]["held"])
	kinds = {row["kind"] for row in report["tables"]["signalled"] if row["wait_ns"] > 100e6}
	ok(held < 20e6, "waits for work in a pool, queue or event are not waits for locks",
	   [row for row in report["tables"]["held"] if row["wait_ns"] > 5e6])
	ok({"queue", "event"} <= kinds, "they are waits for a queue and an event", kinds)


def native(folder):
	if not shutil.which("g++"):
		skip("mutexes of C++", "g++ is not installed")
		return
	program = os.path.join(folder, "planted")
	subprocess.run(["g++", "-O2", "-g", "-std=c++17", "-pthread", os.path.join(HERE, "planted.cpp"), "-o", program],
		       check=True, timeout=100)
	rec = Recording([*gil_lib.REALTIME, program, "1"], FAMILIES, FLAGS)
	judge("std::mutex and pthread_mutex_t", rec, ("standard", "posix"))
	judge("std::timed_mutex, whose tries time out", rec, ("timed",), 0.75)
	rec = Recording([*gil_lib.REALTIME, program, "1"], FAMILIES + ",lock", FLAGS)
	judge("with family lock, std::mutex and pthread_mutex_t", rec, ("standard", "posix"))
	judge("with family lock, which names owners, std::timed_mutex", rec, ("timed",))


def main():
	folder = workdir()
	build_extension(folder)
	each_version(folder)
	of_one_version(folder, gil_lib.pythons()[0]["3.11 debian"])
	native(folder)
	done()


if __name__ == "__main__":
	main()
