#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""NVTX's extensions: the values of payloads with a schema (structs, enums, arrays, strings), and the samples of counters,
are those that the program passed."""
import collections
import struct

from nvtx_lib import Launched, Texts, counts, programs
from recording import counted
from sonde_cli import tables
from tap import done, ok, skip_all

ROUNDS = 500
KIND_NONE, KIND_UINT64, KIND_INT64, KIND_DOUBLE = 0, 1, 2, 3


def value(e):
	if e["value_kind"] == KIND_DOUBLE:
		return struct.unpack("<d", struct.pack("<Q", e["value"]))[0]
	return struct.unpack("<q", struct.pack("<Q", e["value"]))[0]


def check_payloads(rec, texts):
	events = rec.of("nvtx_payload")
	want = collections.Counter({
		f"batch={i} loss={i + 0.25} small=-3 label=label sizes=[1,2,3] phase=hot inner={{a=-7 b=0.5}} note=a note": 4
		for i in range(ROUNDS)})
	found = collections.Counter(e["text"] for e in events)
	ok(found == want, "the values of each payload", f"{counted(len(events), 4 * ROUNDS)}: {list((found - want).items())[:2]}")
	ok({texts.of(e, "schema") for e in events} == {"step"}, "the name of their schema")
	moments = {(e["tid"], e["start"]) for e in rec.of("nvtx_range")} | {(e["tid"], e["time"]) for e in rec.of("nvtx_mark")}
	ok({(e["tid"], e["time"]) for e in events} == moments, "each has the time of a range's begin or of a mark")


def main():
	program = programs("nvtx_payloads").get("13")
	if not program:
		skip_all("the headers with payloads could not be downloaded: scripts/nvtx.sh prints why")
	rec = Launched([program, str(ROUNDS)])
	texts = Texts(rec.trace)
	ok(rec.status == 0 and " 0 lost" in rec.messages, "recorded without losses", rec.messages)
	ok(rec.output[1] == "1", "the domain is enabled", str(rec.output))
	found = counts(rec.of("nvtx_range"), texts)
	ok(found == {"extended:label": 2 * ROUNDS}, "ranges have the name that a payload states", str(found))
	found = counts(rec.of("nvtx_mark"), texts)
	ok(found == {"extended:label": ROUNDS, "extended:core mark": ROUNDS}, "marks, too", str(found))
	check_payloads(rec, texts)
	samples = collections.defaultdict(list)
	for e in rec.of("nvtx_counter"):
		samples[texts.label(e)].append(value(e) if e["value_kind"] else None)
	want = {"extended:ints": [-i for i in range(ROUNDS)], "extended:doubles": [i * 0.5 for i in range(ROUNDS)],
		"extended:raw": [v for i in range(ROUNDS) for v in (i + 1, None)]}
	ok(samples == want, "each sample of each counter, in order", str({k: (len(v), v[:4]) for k, v in samples.items()}))
	rows = {r["counter"]: r for r in tables("report", rec.path, "nvtx")["counters"]}
	raw = rows["extended:raw"]
	ok((raw["samples"], raw["without_value"], raw["min_value"], raw["max_value"], raw["avg_value"]) ==
	   (2 * ROUNDS, ROUNDS, 1, ROUNDS, (ROUNDS + 1) / 2), "report nvtx sums the counters", str(raw))
	done()


main()
