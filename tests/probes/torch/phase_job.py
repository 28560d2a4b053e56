# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs of phase_work.py"""
import os
import signal
import subprocess

from ahead import ahead
from case import FOLDER, record
from torch_env import python

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "phase_work.py")


class Job:
    """Two ranks, of which rank 1 is slow in a phase from a call of set() on. await_ranks() sets .pids, by number."""
    def __init__(self, name, *launcher):
        self.name, self.path = name, os.path.join(FOLDER, name)
        self.set("none")
        # jobs side by side share the CPUs evenly, and torchrun starts sessions of its own
        self.program = subprocess.Popen([*launcher, python(), WORK, self.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env={**os.environ, "OMP_NUM_THREADS": "1"}, preexec_fn=os.setsid if launcher else ahead)
        self.pids = {}

    def await_ranks(self):
        self.pids = dict(map(int, self.program.stdout.readline().split()) for _ in range(2))

    def set(self, phase):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            f.write(phase)
        os.rename(self.path + ".new", self.path)

    def all_pids(self):
        return [self.program.pid, *self.pids.values()]

    def end(self):
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()


def record_jobs(jobs, phase):
    """The path of a recording while rank 1 of these jobs is slow in this phase"""
    for job in jobs:
        job.set(phase)
    return record("-d", "3", "-p", ",".join(str(pid) for job in jobs for pid in job.all_pids()), name=phase)
