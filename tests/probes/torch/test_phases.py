#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A slow rank in a default recording, without PyTorch's operators: its number, the phase in which it is slow and its line are the first finding,
of ranks that torch.multiprocessing or torchrun started. None of equal ranks is blamed.
test: timeout=240"""
import os
import re
import signal
import subprocess

from case import FOLDER, finish, record, say
from tap import ok
from torch_env import python

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "phase_work.py")
# where the other rank waits, and what the finding states of the phase if it is another one
PHASES = {"data": ("the backward pass", ", in data loading"), "forward": ("the backward pass", ", in the forward pass"),
          "backward": ("the backward pass", ""), "optimizer": ("all_reduce", ", in the optimizer"), "collective": ("all_reduce", "")}


class Job:
    """Two ranks, by their number in .pids; a phase is slow from a call of set() on"""
    def __init__(self, name, *launcher):
        self.path = os.path.join(FOLDER, name)
        self.set("none")
        self.program = subprocess.Popen([*(launcher or [python()]), WORK, self.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"}, start_new_session=True)
        self.pids = dict(map(int, self.program.stdout.readline().split()) for _ in range(2))

    def set(self, phase):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write(phase)
        os.rename(self.path + ".new", self.path)

    def record(self, phase):
        """The path of a recording while rank 1 is slow in this phase"""
        self.set(phase)
        return record("-d", "3", "-p", ",".join(map(str, [self.program.pid, *self.pids.values()])), name=phase)

    def end(self):
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()


def check_slow(job, phase, launcher):
    waits, phase_words = PHASES[phase]
    path = job.record(phase)
    text = " ".join(say("report", path).split("\n    ")[0].split())
    ok(re.fullmatch(rf"rank 1 \(phase_work.py {job.pids[1]}\) makes the other rank wait \d\d% of the time in {waits}: it computed \d\d% of its time in "
                    rf"Slow.load_shard \(phase_work.py:26\){phase_words}", text), f"{launcher}, {phase}: the slow rank is the first finding", text)
    why = say("report", path, "why", job.pids[0]).split("\n\n")[0]
    ok(f"ended by phase_work.py {job.pids[1]} " in why and "load_shard" in why, f"{launcher}, {phase}: why of the other rank leads to it", why)


def check_equal(job, launcher):
    text = say("report", job.record("none"))
    ok("`sonde record -t +torch` records its operators" in text, f"{launcher}: the summary names the family with more about PyTorch", text)
    ok(" makes the " not in text and "in the end it waited" not in text, f"{launcher}: none of equal ranks is blamed", text[:1000])


def main():
    job = Job("spawned")
    for phase in PHASES:
        check_slow(job, phase, "spawn")
    check_equal(job, "spawn")
    job.end()
    job = Job("torchrun", python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    check_slow(job, "forward", "torchrun")
    check_equal(job, "torchrun")
    job.end()
    finish()


main()
