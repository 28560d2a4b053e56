#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs of several launchers side by side in a default recording: torchrun, mpirun (or what it sets, if it is not installed) and what Slurm's srun
sets. The slow rank of each is named by its number; of equal ranks none is.
test: timeout=400"""
import json
import re
import shutil

from case import finish, say
from phase_job import Job, record_jobs
from tap import ok
from torch_env import python


def sets(rank, size):
    """A launcher that only sets these variables"""
    start = 'for i in 0 1; do %s=$i %s=2 "$@" & done; wait' % (rank, size)
    return ["sh", "-c", start, "sh"]


def stragglers(path):
    return [f for f in json.loads(say("report", path, "--format", "json"))["findings"] if f.get("kind") == "straggler"]


def main():
    mpi = shutil.which("mpirun")
    jobs = [Job("torchrun", python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"),
            Job("slurm", *sets("SLURM_PROCID", "SLURM_NTASKS")),
            Job("mpi", *([mpi, "-n", "2", "--oversubscribe", "--allow-run-as-root"] if mpi else sets("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")))]
    for job in jobs:
        job.await_ranks()
    found = stragglers(record_jobs(jobs, "forward"))
    for job in jobs:
        text = next((f["text"] for f in found if f["pid"] == job.pids[1]), None)
        # of a job that hardly gets a CPU beside the others there are few samples
        ok(text and re.match(rf"rank 1 \(phase_work.py {job.pids[1]}\) makes the other rank wait \d\d% of the time in .*: it computed \d\d% of its time in "
                             r"(Slow.load_shard|Net.forward) \(phase_work.py:\d+\), in the forward pass", text), f"{job.name}: the slow rank is named", text)
    found = stragglers(record_jobs(jobs, "none"))
    ok(not found, "none of equal ranks is blamed", found)
    for job in jobs:
        job.end()
    finish()


main()
