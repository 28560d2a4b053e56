#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A slow rank in a default recording, without PyTorch's operators: its number, the phase in which it is slow and its line are the first finding.
Neither of two equal ranks is blamed.
test: timeout=240"""
import re

from case import finish, say
from phase_job import Job, record_jobs
from tap import ok

# where the other rank waits, and what the finding states of the phase if it is another one
PHASES = {"data": ("the backward pass", ", in data loading"), "forward": ("the backward pass", ", in the forward pass"),
          "backward": ("the backward pass", ""), "optimizer": ("all_reduce", ", in the optimizer"), "collective": ("all_reduce", "")}


def check_slow(job, phase):
    waits, phase_words = PHASES[phase]
    path = record_jobs([job], phase)
    text = " ".join(re.split(r"\n    (?! )", say("report", path))[0].split())
    ok(re.fullmatch(rf"rank 1 \(phase_work.py {job.pids[1]}\) makes the other rank wait \d\d% of the time in {waits}: it computed \d\d% of its time in "
                    rf"Slow.load_shard \(phase_work.py:26\){phase_words}", text), f"{phase}: the slow rank is the first finding", text)
    why = say("report", path, "why", job.pids[0]).split("\n\n")[0]
    ok(f"ended by phase_work.py {job.pids[1]} " in why and "load_shard" in why, f"{phase}: why of the other rank leads to it", why)


def main():
    job = Job("spawned")
    job.await_ranks()
    for phase in PHASES:
        check_slow(job, phase)
    text = say("report", record_jobs([job], "none"))
    ok("`sonde record -t +torch` records its operators" in text, "the summary names the family with more about PyTorch", text)
    ok(" makes the " not in text and "in the end it waited" not in text, "none of equal ranks is blamed", text[:1000])
    job.end()
    finish()


main()
