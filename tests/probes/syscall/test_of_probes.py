#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""The system calls by which the kernel handles probed returns are caused by sonde: no event and no report has them."""
import os
import subprocess
import tempfile

from recording import ROOT, Recording
from tap import done, ok, skip_all

B = os.environ.get("B", os.path.join(ROOT, "build"))
PROGRAM = os.path.join(B, "tests", "probes", "cuda", "cuda_truth-13")
SONDE = os.environ.get("SONDE", os.path.join(B, "test", "sonde"))

if not os.path.exists(PROGRAM):
	skip_all("there is no CUDA runtime to link with")
with tempfile.NamedTemporaryFile() as said:
	rec = Recording([PROGRAM, said.name, "200"], "proc,cuda,syscall,sched")
made = rec.of("syscall")
ok(rec.status == 0 and made and " 0 probe hits" not in rec.messages, "system calls beside probed functions", rec.messages)
probes = [e for e in made if e["nr_name"] in ("SYS_uretprobe", "SYS_uprobe")]
ok(not probes, "no recorded system call is caused by a probe", f"{len(probes)}: {probes[:1]}")
for name in ("summary", "osrt", "offcpu"):
	text = subprocess.run([SONDE, "report", rec.path, name], capture_output=True, text=True, check=True).stdout
	ok("uretprobe" not in text and "uprobe" not in text, f"report {name} has no such call")
done()
