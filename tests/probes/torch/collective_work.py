#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Four ranks of torch.distributed over gloo, which call all_reduce in a loop. Rank 2 is late in each step ("late"), never enters the collective
of one step ("hang"), is late in one step ("once"), or is like the others ("none"). "groups": it is late in each step, and two process groups of two
ranks call all_reduce before all ranks do. Each rank prints when it called, by its own clock."""
import json
import os
import subprocess
import sys
import tempfile
import time

RANKS, STEPS, ODD, DELAY, HANG, ONCE = 4, 25, 2, 0.04, 15, 0.5


def load_shard():
    time.sleep(DELAY)


def write_checkpoint():
    time.sleep(ONCE)


def wait_for_storage():
    print("hung", flush=True)
    time.sleep(1000)


def rank_program(what):
    import torch
    import torch.distributed
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    torch.distributed.init_process_group("gloo", init_method="file://" + os.environ["STORE"], rank=rank, world_size=RANKS)
    values, clock, times = torch.ones(1000), time.monotonic_ns, []
    torch.distributed.all_reduce(values)
    groups = [torch.distributed.new_group([first, first + 1]) for first in range(0, RANKS, 2) if what == "groups"]
    print("ready", flush=True)
    sys.stdin.readline()
    for step in range(STEPS):
        time.sleep(0.01)
        if rank == ODD and what in ("late", "groups"):
            load_shard()
        if rank == ODD and what == "once" and step == HANG:
            write_checkpoint()
        if rank == ODD and what == "hang" and step == HANG:
            wait_for_storage()
        start = clock()
        if groups:
            torch.distributed.all_reduce(values, group=groups[rank // 2])
        torch.distributed.all_reduce(values)
        times.append((start, clock()))
    print(json.dumps({"rank": rank, "pid": os.getpid(), "times": times}), flush=True)
    print("done", flush=True)
    sys.stdin.readline()
    torch.distributed.destroy_process_group()


def until(r, word):
    for line in r.stdout:
        if line.strip() == word:
            return
        print(line, end="", flush=True)


def main():
    what = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "STORE": os.path.join(folder, "store"), "WORLD_SIZE": str(RANKS)}
        ranks = [subprocess.Popen([sys.executable, __file__, what, "rank"], env={**environment, "RANK": str(i)}, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True) for i in range(RANKS)]
        print("pids", *(r.pid for r in ranks), flush=True)

        def both(word):
            for r in ranks:
                until(r, word)
            print(word, flush=True)
            sys.stdin.readline()

        def go():
            for r in ranks:
                r.stdin.write("go\n")
                r.stdin.flush()

        both("ready")
        go()
        if what == "hang":
            until(ranks[ODD], "hung")
            time.sleep(3)
            print("done", flush=True)
            sys.stdin.readline()
            for r in ranks:
                r.kill()
        else:
            both("done")
            go()
        for r in ranks:
            r.wait()


if __name__ == "__main__":
    if sys.argv[2:] == ["rank"]:
        rank_program(sys.argv[1])
    else:
        main()
