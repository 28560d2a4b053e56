#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate timeout=200
"""Every call of NVTX's core, of two versions of its headers: names, domains, levels, colours, payloads and counts are
exact, if the program is started by `record` and if it ran before, without a tool."""
import collections

from nvtx_lib import PUSHED, STARTED, Launched, Texts, counts, payload, programs
from recording import EVENT_OPEN, Recording, counted
from sonde_cli import tables
from tap import done, ok

ROUNDS = 2000
RANGES = {"outer": 1, "wide \u00e9\u4e2d\U0001F600": 1, "started": 1, "started wide": 1, "with attributes": 2,
	  "the domain:in domain": 1, "default inside domain": 1, "the domain:registered": 2}
MARKS = {"mark": 1, "wide mark": 1, "with attributes": 1, "the domain:registered": 1}


def check_counts(rec, texts, what):
	ranges, marks = rec.of("nvtx_range"), rec.of("nvtx_mark")
	found = counts(ranges, texts)
	want = collections.Counter({k: n * ROUNDS for k, n in RANGES.items()})
	want.update({"ended by another thread": 1, "never popped": 1})
	ok(found == want, f"{what}: all {sum(want.values())} ranges by name",
	   f"{counted(sum(found.values()), sum(want.values()))}: {(found - want) or (want - found)}")
	found = counts(marks, texts)
	want = collections.Counter({k: n * ROUNDS for k, n in MARKS.items()})
	ok(found == want, f"{what}: all {sum(want.values())} marks by name", f"{counted(sum(found.values()), sum(want.values()))}")
	return ranges, marks


def check_attributes(ranges, marks, texts, what):
	with_all = [e for e in ranges if texts.label(e) == "with attributes"]
	pushed = sorted(payload(e) for e in with_all if e["kind"] == PUSHED)
	ok(pushed == list(range(1 - ROUNDS, 1)), f"{what}: payloads of type int64", str(pushed[:3]))
	unsigned = {payload(e) for e in with_all if e["kind"] == STARTED}
	ok(unsigned == {4000000000}, f"{what}: payloads of type uint32", str(unsigned))
	doubles = sorted(payload(e) for e in marks if texts.label(e) == "with attributes")
	ok(doubles == [i + 0.5 for i in range(ROUNDS)], f"{what}: payloads of type double", str(doubles[:3]))
	ok({e["color"] for e in with_all} == {0xff00ff80} and {e["category"] for e in with_all} == {7},
	   f"{what}: colour and category")


def check_nesting(ranges, texts, what):
	levels = {texts.label(e): e["level"] for e in ranges if e["kind"] == PUSHED}
	ok(levels == {"outer": 0, "wide \u00e9\u4e2d\U0001F600": 1, "with attributes": 0, "the domain:in domain": 0,
		      "default inside domain": 0, "the domain:registered": 1, "never popped": 0},
	   f"{what}: levels by domain", str(levels))
	by_name = collections.defaultdict(list)
	for e in ranges:
		by_name[texts.label(e)].append((e["start"], e["time"]))
	inside = all(a <= c and d <= b for (a, b), (c, d) in
		     zip(sorted(by_name["outer"]), sorted(by_name["wide \u00e9\u4e2d\U0001F600"])))
	ok(inside, f"{what}: each inner range lies in its outer one")
	opened = [e for e in ranges if e["flags"] & EVENT_OPEN]
	ok([texts.label(e) for e in opened] == ["never popped"], f"{what}: the range that never ended is marked so", str(opened))
	other = [e for e in ranges if texts.label(e) == "ended by another thread"]
	ok(len(other) == 1 and other[0]["tid"] != other[0]["end_ns_tid"], f"{what}: a range that another thread ended", str(other))


def check_names(rec, texts, what):
	categories = {(texts.of(e, "domain"), e["category"]): texts.of(e, "name") for e in rec.of("nvtx_category")}
	ok(categories == {("", 7): "seventh", ("the domain", 8): "eighth"}, f"{what}: names of categories", str(categories))
	names = {e["name"]: e["handle"] for e in rec.of("nvtx_resource")}
	ok(names.get("main of the test") == rec.pid and "named as resource" in names, f"{what}: names of threads", str(names))


def check(version, program, before):
	what = f"NVTX of CUDA {version}, {'running before' if before else 'started by record'}"
	if before:
		rec = Recording([program, "before", str(ROUNDS)], "nvtx", options=("--inject",), settle=1.5)
	else:
		rec = Launched([program, str(ROUNDS)])
	texts = Texts(rec.trace)
	ok(rec.status == 0 and " 0 lost" in rec.messages, f"{what}: recorded without losses", rec.messages)
	ranges, marks = check_counts(rec, texts, what)
	check_attributes(ranges, marks, texts, what)
	check_nesting(ranges, texts, what)
	check_names(rec, texts, what)
	dropped = {e["reason"]: e["records"] for e in rec.of("nvtx_dropped")}
	ok(dropped == ({3: 1} if before else {}), f"{what}: ranges that began before are counted", str(dropped))
	return rec


def check_report(rec):
	report = tables("report", rec.path, "nvtx")
	rows = {(r["range"], r["style"]): r["instances"] for r in report["ranges"]}
	ok(rows.get(("the domain:registered", "PushPop")) == ROUNDS and rows.get(("started", "StartEnd")) == ROUNDS,
	   "report nvtx has the counts", str(rows))


def main():
	for version, program in programs("nvtx_calls").items():
		for before in (False, True):
			rec = check(version, program, before)
	check_report(rec)
	done()


main()
