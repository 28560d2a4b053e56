#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Running and runnable times, compared with the kernel's own counters."""
import os

from recording import EVENT_OPEN, Recording, compile_c
from spans import by_thread, gaps, merged
from tap import done, ok

MS = 1_000_000


def close(traced, counted, steal, extra):
	"""True if the times agree within 1% plus steal time, or within 0.1 ms below 10 ms"""
	margin = max(counted // 100, MS // 10) + extra
	return counted - margin <= traced <= counted + margin + steal


def main():
	program = compile_c(os.path.join(os.path.dirname(os.path.abspath(__file__)), "work.c"))
	rec = Recording([program, "load", "4000"], "sched", ["--sched=all"])
	spans = merged(rec)
	threads = by_thread(spans)
	idle = next(int(line.split()[1]) for line in rec.output if line.startswith("idle"))
	wrong = {"run": [], "wait": [], "length": [], "since": []}
	kinds = set()
	worst = {"run": 0, "wait": 0, "length": 0, "since": 0}
	for line in rec.output:
		if not line.startswith("thread"):
			continue
		_, tid, kind, run, wait, times = line.split()
		run, wait = int(run), int(wait)
		mine = [e for e in threads.get(int(tid), []) if e["time"] <= idle]
		runs = [e for e in mine if "wake" not in e]
		traced = {"run": sum(e["charged"] for e in runs),
			  "length": sum(e["time"] - e["start"] for e in runs),
			  "wait": sum(e["waited"] for e in mine if "wake" in e),
			  "since": sum(e["time"] - e["wake"] for e in mine if "wake" in e)}
		print(f"# {kind} {tid}: on CPU {traced['run'] / MS:.3f} ms, kernel {run / MS:.3f}, spans "
		      f"{traced['length'] / MS:.3f}; waiting {traced['wait'] / MS:.3f} ms, kernel {wait / MS:.3f}; "
		      f"{len(runs)} runs, kernel {times}")
		if run > 100 * MS:
			kinds.add(kind)
		for what, counted in (("run", run), ("wait", wait), ("length", run), ("since", wait)):
			if counted > 10 * MS:
				worst[what] = max(worst[what], abs(traced[what] / counted - 1))
			# the kernel counts a switch from the wake-up that requested it, the trace from the switch
			extra = 20000 * int(times) if what in ("length", "since") else 0
			if not close(traced[what], counted, rec.steal, extra):
				wrong[what].append(f"{kind} {tid}: traced {traced[what]}, kernel {counted}")
	ok(len(kinds) >= 4, f"threads of {len(kinds)} kinds ran for more than 100 ms each",
	   f"steal {rec.steal / MS:.0f} ms; largest error on CPU {worst['run']:.3%}, waiting {worst['wait']:.3%}\n"
	   f"length of spans {worst['length']:.3%}, from wake-up {worst['since']:.3%}")
	ok(not wrong["run"], "time on the CPU is the kernel's within 1% plus steal", "\n".join(wrong["run"]))
	ok(not wrong["wait"], "time waiting for a CPU is the kernel's within 1% plus steal", "\n".join(wrong["wait"]))
	ok(not wrong["length"] and not wrong["since"], "lengths of spans agree too, except for the time from a wake-up to the switch",
	   "\n".join(wrong["length"] + wrong["since"]))
	bad = [g for tid, list_ in threads.items() for g in gaps(list_)]
	ok(not bad, f"spans of {len(threads)} threads tile without gap or overlap", "\n".join(bad[:5]))
	waits = [e for e in spans if "wake" in e and not e["flags"] & EVENT_OPEN]
	ok(waits and all(e["start"] <= e["wake"] <= e["time"] for e in waits),
	   f"{len(waits)} times of becoming runnable are within their spans")
	print("# " + rec.messages.replace("\n", "\n# "))
	done()


main()
