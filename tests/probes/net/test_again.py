#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Retransmitted segments, and tail-loss probes, which are no sign of loss: their numbers equal the kernel's counters."""
import json
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
from recording import ROOT, Recording, compile_c
from tap import done, ok, skip, skip_all


def main():
	rec = Recording([compile_c(os.path.join(HERE, "again.c"))], "net")
	if rec.output == ["none"]:
		skip_all("no network namespace can be created")
	ok(rec.status == 0 and " 0 lost" in rec.messages, "recorded without losses", rec.messages)
	said = {w: list(map(int, numbers)) for w, *numbers in map(str.split, rec.output)}
	events, closes = rec.of("net_retransmit"), rec.of("net_close")
	for what, (port, again, probes) in said.items():
		of = [e["loss_probe"] for e in events if port in (e["local_port"], e["peer_port"])]
		ends = [e for e in closes if port in (e["local_port"], e["peer_port"])]
		close = (sum(e["retransmits"] for e in ends), sum(e["loss_probes"] for e in ends))
		if not probes:
			skip(f"{what}: tail-loss probes", "the kernel sent no tail-loss probe")
		ok((len(of), sum(of)) == (again, probes), f"{what}: {again} retransmitted segments, {probes} of them tail-loss probes",
		   f"{len(of)}, {sum(of)}")
		ok(close == (again - probes, probes), f"{what}: the connection's ends count both kinds separately", close)
	ok(said["lost"][1] > said["lost"][2], "there are retransmissions if all segments are dropped", said)
	sonde = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))
	text = subprocess.run([sonde, "report", rec.path, "net", "--format", "json"], capture_output=True, text=True).stdout
	root = json.loads(text)
	lost = sum(again - probes for _, again, probes in said.values())
	ok(sum(r["retransmits"] for r in root["tables"]["peers"]) == lost and
	   any(f["text"].startswith(f"{lost} TCP segment") for f in root["findings"]), "the report counts only lost segments as retransmitted",
	   root["findings"])
	done()


main()
