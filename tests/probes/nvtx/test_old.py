#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""libnvToolsExt.so.1 (NVTX 2), which PyTorch uses up to 2.6: ranges and marks of a program that `record` starts, and of one
that has used the library before, or has only loaded it."""
import os

from nvtx_lib import BUILD, Launched, Texts, counts
from recording import Recording, counted
from tap import done, ok, skip_all

ROUNDS = 1000
LIBRARY = os.path.join(os.environ.get("ROOT", "."), "build", "nvtx", "11", "lib", "libnvToolsExt.so.1")
PROGRAM = os.path.join(BUILD, "tests", "probes", "nvtx", "old_calls")


def check(rec, what):
	texts = Texts(rec.trace)
	ok(rec.status == 0 and " 0 lost" in rec.messages, f"{what}: recorded without losses", rec.messages)
	found = counts(rec.of("nvtx_range"), texts)
	ok(found == {"old outer": ROUNDS, "old inner": ROUNDS, "old started": ROUNDS}, f"{what}: ranges",
	   f"{counted(sum(found.values()), 3 * ROUNDS)}: {found}")
	levels = {texts.label(e): e["level"] for e in rec.of("nvtx_range")}
	ok(levels == {"old outer": 0, "old inner": 1, "old started": 0}, f"{what}: levels", str(levels))
	found = counts(rec.of("nvtx_mark"), texts)
	ok(found == {"old mark": ROUNDS}, f"{what}: marks", f"{counted(sum(found.values()), ROUNDS)}: {found}")


def main():
	if not os.path.exists(LIBRARY):
		skip_all("NVTX 2 could not be downloaded: scripts/nvtx.sh prints why")
	check(Launched([PROGRAM, LIBRARY, str(ROUNDS)]), "started by record")
	for before in (["before"], []):
		rec = Recording([PROGRAM, LIBRARY, *before, str(ROUNDS)], "nvtx", options=("--inject",), settle=1.5)
		check(rec, "used before" if before else "only loaded before")
	done()


main()
