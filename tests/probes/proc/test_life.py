#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: smoke
"""Forks, execs, names, exit codes and signals: exactly those of the program."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import Recording, compile_c, counted, counted_set
from tap import done, ok

ODD = "\udcff\"odd\n\\name"


def text(value):
	"""A name, which may be any bytes, as text"""
	if isinstance(value, bytes):
		return value
	return value.encode("utf-8", "surrogateescape")


def main():
	program = compile_c(os.path.join(HERE, "life.c"))
	rec = Recording([program], "proc")
	said = [line.split() for line in rec.output]

	def value(word):
		return next(int(s[1]) for s in said if s[0] == word)

	pids = {int(s[1]) for s in said if s[0] in ("exit", "signal", "exec", "thread_exec", "leader")}
	every = {kind: [e for e in rec.trace.events(kind) if e["pid"] in pids | {rec.pid}]
		 for kind in ("proc_task", "proc_fork", "proc_exec", "proc_exit", "proc_rename", "proc_image")}

	tasks = every["proc_task"]
	ok([(e["pid"], e["tid"], e["ppid"], e["ns_pid"], e["ns_tid"], text(e["comm"])) for e in tasks] ==
	   [(rec.pid, rec.pid, os.getpid(), rec.pid, rec.pid, b"life")], "the program is in the snapshot, once", tasks)
	ok(all(0 < e["start_time"] < e["time"] for e in tasks), "the snapshot has the time of its start")

	made = {(e["child_pid"], e["child_tid"]) for e in every["proc_fork"] if e["pid"] == rec.pid}
	want = {(p, p) for p in pids} | {(rec.pid, value("thread"))}
	ok(made == want, f"{len(want)} children and threads of the first process", f"{counted_set(made, want)}: {made ^ want}" if made != want else "")
	inner = {(e["pid"], e["child_pid"], e["child_tid"]) for e in every["proc_fork"] if e["pid"] != rec.pid}
	want = {(value("thread_exec"), value("thread_exec"), value("old_tid")),
		(value("leader"), value("leader"), value("inner_tid"))}
	ok(inner == want, "the children's threads", f"{counted_set(inner, want)}: {inner ^ want}" if inner != want else "")
	ok(all((e["child_ns_pid"], e["child_ns_tid"]) == (e["child_pid"], e["child_tid"]) for e in every["proc_fork"]),
	   "pids and tids in the pid namespace")

	execs = {e["pid"]: e for e in every["proc_exec"]}
	ok(set(execs) == {value("exec"), value("thread_exec")} and len(every["proc_exec"]) == 2, "two execs", counted(len(every["proc_exec"]), 2))
	ok(all(text(e["path"]) == text(program) and text(e["comm"]) == b"life" for e in execs.values()),
	   "execs have path and name", list(execs.values()))
	ok(execs[value("exec")]["old_tid"] == 0 and execs[value("thread_exec")]["old_tid"] == value("old_tid"),
	   "an exec in a thread names that thread")

	last = {e["pid"]: e for e in every["proc_exit"] if e["group_dead"]}
	ended = [(s[0], int(s[1]), int(s[2])) for s in said if s[0] in ("exit", "signal")]
	got = [(kind, pid, last[pid]["signal" if kind == "signal" else "code"]) for kind, pid, _ in ended if pid in last]
	ok(got == ended, f"{len(ended)} exit codes and signals", f"{counted(len(got), len(ended))}: {got}")
	ok(all(last[p]["signal"] == 0 for k, p, _ in ended if k == "exit") and
	   all(last[p]["code"] == 0 for k, p, _ in ended if k == "signal"), "an end has an exit code or a signal, not both")
	ok(last[value("exec")]["code"] == 7 and last[rec.pid]["code"] == 42, "the exit codes after exec and of the program")
	n = sum(e["pid"] == rec.pid for e in every["proc_exit"])
	ok(n == 2, "each of the program's two threads ended once", counted(n, 2))
	leader = sorted((e["tid"], e["group_dead"]) for e in every["proc_exit"] if e["pid"] == value("leader"))
	ok(leader == sorted([(value("leader"), 0), (value("inner_tid"), 1)]), "only the last thread's end is marked as the process's end", leader)

	names = sorted((e["tid"], text(e["comm"])) for e in every["proc_rename"])
	want = sorted([(rec.pid, b"renamed"), (value("thread"), text(ODD)), (value("inner_tid"), text(ODD)),
		       (value("exec"), b"life"), (value("thread_exec"), b"life")])
	ok(names == want, "names may have any bytes", names)

	images = {(e["pid"], text(e["exe_text"]), text(e["command_text"])) for e in every["proc_image"] if e["pid"] == rec.pid}
	ok(images == {(rec.pid, text(os.path.realpath(program)), text(program))}, "processes have executable and command line", images)
	done()


main()
