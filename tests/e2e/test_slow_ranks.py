#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rank that the others wait for, in traces that are written for this, of the scheduler's events and samples alone: its number, what it did
and in which phase. Equal ranks, ranks that lack a CPU, and processes of other users, cgroups and parents are not blamed.
test: smoke parallel"""
import json
import os
import random
import tempfile

from planted import END, GOLDEN, code, first_of, make, merged_schema, off, off_stack, run, say
from tap import done, ok

TORCH = "/usr/lib/python3.11/site-packages/torch"
STEPS, STEP = 60, 0.1  # s


def schema(folder):
    """The families of several traces in one schema, with the ranks, users and cgroups of current recordings"""
    with open(merged_schema(folder)) as f:
        merged = json.load(f)
    with open(os.path.join(GOLDEN, "torch.schema.json")) as f:
        events = {e["name"]: e for e in json.load(f)["events"]}
    image = events["proc_image"]
    image["fields"].append({"name": "uid", "type": "unsigned", "size": 4, "offset": image["size"]})
    image["size"] += 8
    merged["events"] = [e for e in merged["events"] if e["name"] != "proc_image"] + [image, events["proc_rank"]]
    path = os.path.join(folder, "ranks.schema.json")
    with open(path, "w") as f:
        json.dump(merged, f)
    return path


def stacks():
    """The lines of all stacks, and the number of each"""
    made = {
        "reduce": code(1, "train /app/a.py 5", f"all_reduce {TORCH}/distributed/distributed_c10d.py 2800"),
        "backward": code(2, "train /app/a.py 6", f"_engine_run_backward {TORCH}/autograd/graph.py 800",
                         "_ZN4c10d7Reducer17finalize_backwardEv /usr/lib/libtorch_cpu.so"),
        "train": code(3, "train /app/a.py 4"),
        "tokenize": code(4, "train /app/a.py 4", "tokenize /app/a.py 20", "tokenize.<locals>.<genexpr> /app/a.py 21"),
        "save": code(5, "train /app/a.py 7", "checkpoint /app/a.py 30", f"save {TORCH}/serialization.py 900"),
        "forward": code(6, "train /app/a.py 6", f"Module._call_impl {TORCH}/nn/modules/module.py 1700", "Net.forward /app/a.py 40"),
        "runLoop": code(7, "_ZN4c10d16ProcessGroupGloo7runLoopEi /usr/lib/libtorch_cpu.so"),
        "other": code(8, "main /app/b.py 5", f"all_reduce {TORCH}/distributed/distributed_c10d.py 2800"),
    }
    return [line for lines, _ in made.values() for line in lines], {name: number for name, (_, number) in made.items()}


LINES, AT = stacks()


class Rank:
    """A process whose each step of 100 ms is some ms of work, then a wait in a collective"""
    def __init__(self, pid, number=None, size=2, parent=1, uid=1000, cgroup="/job", wait="reduce"):
        self.pid, self.at, self.wait, self.lines = pid, 0.5, AT[wait], list(LINES)
        self.lines += [f'proc_task time=@0 pid={pid} tid={pid} ppid={parent} comm="a"',
                       f'proc_image time=@0 pid={pid} tid={pid} uid={uid} exe="/usr/bin/python3" command="" cgroup="{cgroup}"']
        if number is not None:
            self.lines += [f'proc_rank time=@0 pid={pid} tid={pid} rank={number} world_size={size} local_rank={number} host="h"']

    def computes(self, ms, stack="train"):
        end = self.at + ms / 1e3
        n = max(1, int(ms) // 5)
        self.lines += [run(self.pid, self.pid, self.at, end)]
        self.lines += [f"sample_cpu time=@{self.at + (i + 0.5) * ms / n / 1e3:.6f} pid={self.pid} tid={self.pid} period={int(ms * 1e6 / n)} stack={AT[stack]}"
                       for i in range(n)]
        self.at = end

    def sleeps(self, ms, stack):
        end = self.at + ms / 1e3
        self.lines += [off(self.pid, self.pid, self.at, end, end, "SCHED_SLEEP"),
                       off_stack(self.pid, self.pid, self.at, end, AT[stack], "SYS_clock_nanosleep")]
        self.at = end

    def lacks_cpu(self, ms):
        end = self.at + ms / 1e3
        self.lines += [off(self.pid, self.pid, self.at, self.at, end, "SCHED_RUNNABLE")]
        self.at = end

    def waits_until(self, at):
        if at > self.at:
            self.lines += [off(self.pid, self.pid, self.at, at, at, "SCHED_SLEEP"), off_stack(self.pid, self.pid, self.at, at, self.wait, "SYS_futex")]
        self.at = at

    def step(self, work):
        """Calls work(self), then waits for the end of the step."""
        end = self.at + STEP
        work(self)
        self.waits_until(end)


def both(folder, name, ranks, *lines):
    """The path of the trace, and all findings"""
    path = make(folder, name, [line for r in ranks for line in r.lines] + [*lines, END], schema(folder), "proc,sched,gil,sample")
    return path, json.loads(say("report", path, "--format", "json"))["findings"]


def straggler(folder, name, ranks, *lines):
    return first_of(both(folder, name, ranks, *lines)[1], kind="straggler").get("text", "")


def quick(r):
    r.computes(20)


def slow(r):
    r.computes(15)
    r.computes(75, "tokenize")


def train(ranks, works):
    for _ in range(STEPS):
        for r, work in zip(ranks, works):
            r.step(work)
    return ranks


def check_slow(folder):
    """Rank 1 of 4 computes; a thread of the library is in the way"""
    ranks = train([Rank(10 + i, i, 4) for i in range(4)], [quick, slow, quick, quick])
    idle = [off(10, 12, 0.5, 6.4, 6.4, "SCHED_SLEEP"), off_stack(10, 12, 0.5, 6.4, AT["runLoop"], "SYS_futex"), run(10, 12, 6.4, 7)]
    path, found = both(folder, "slow", ranks, *idle)
    ok(found[0]["text"].startswith("rank 1 (a 11) makes the 3 other ranks wait 70% of the time in all_reduce: it computed 75% of its time in "
                                   "tokenize (a.py:20).") and found[0]["kind"] == "straggler", "the slow rank is the first finding", found[0])
    ok(not first_of(found, kind="other-ranks") and not any("runLoop" in f["text"] for f in found), "which the waits of the others are part of", found)
    why = say("report", path, "why", "10").split("\n\n")[0]
    ok("The wait was ended by a 11" in why and "tokenize.<locals>.<genexpr> (a.py:21)" in why, "why of a waiting rank leads to it", why)
    for number in (None, 0):
        # launchers that set no number, or set it before they start the ranks
        text = straggler(folder, "unnumbered", train([Rank(10 + i, number, parent=5) for i in range(2)], [quick, slow]))
        ok(text.startswith("a rank (a 11) makes the other rank wait"), "a slow rank without a number", text)


def check_phases(folder):
    def sleeps(r):
        r.sleeps(80, "forward")

    jobs = [train([Rank(pid + i, i, parent=pid, wait="backward") for i in range(2)], [slow, quick]) for pid in (10, 20)]
    found = [f["pid"] for f in both(folder, "jobs", jobs[0] + jobs[1])[1] if f.get("kind") == "straggler"]
    ok(sorted(found) == [10, 20], "of two jobs each has its slow rank", found)
    text = straggler(folder, "forward", train([Rank(10 + i, i, wait="backward") for i in range(2)], [sleeps, quick]))
    ok("rank 0 (a 10) makes" in text and "in the backward pass: it slept 80% of its time in Net.forward (a.py:40), in the forward pass" in text,
       "a rank that sleeps in its forward pass", text)
    # for few steps, which chance might explain, but in a function that no other rank calls
    ranks = [Rank(10, 0), Rank(11, 1)]
    for step in range(STEPS):
        for r in ranks:
            r.step(quick if step % 20 < 13 else lambda r: [r.computes(10, "save") for _ in range(9)] if r.pid == 10 else quick(r))
    text = straggler(folder, "save", ranks)
    ok("it computed 32% of its time in checkpoint (a.py:30), in saving a checkpoint" in text, "a rank that saves a checkpoint now and then", text)


def check_equal(folder):
    """Ranks whose steps take random times, and are slower in turns"""
    chance = random.Random(1)
    for n in (2, 4):
        blamed = []
        for i in range(10):
            ranks = [Rank(10 + k, k, n) for k in range(n)]
            for _ in range(STEPS):
                for r in ranks:
                    r.step(lambda r: r.computes(min(90, chance.expovariate(1 / 30))))
            found = both(folder, f"equal-{n}-{i}", ranks)[1]
            blamed += [f["text"] for f in found if f.get("kind") == "straggler" or "in the end" in f["text"]]
        ok(not blamed, f"none of {n} equal ranks is blamed in ten runs", blamed)
    ok(not first_of(found, kind="other-ranks"), "nor are their waits a finding beside what they compute", found)
    found = both(folder, "waiting", train([Rank(10, 0), Rank(11, 1)], [lambda r: r.computes(1)] * 2))[1]
    ok("none is slower than the others beyond chance" in first_of(found, kind="other-ranks").get("text", ""), "waits of ranks that do nothing else", found)

    def starved(r):
        r.computes(20)
        r.lacks_cpu(70)

    def slow_and_starved(r):
        r.computes(20, "tokenize")
        r.lacks_cpu(65)

    text = straggler(folder, "busy", train([Rank(10, 0), Rank(11, 1)], [slow_and_starved, lambda r: r.computes(5)]))
    ok("rank 0 (a 10) makes the other rank wait 80%" in text and "it computed 20% of its time in tokenize (a.py:20); it waited 65% of its time for a CPU"
       in text, "a rank that is slow in its code on a busy machine", text)
    text = straggler(folder, "starved", train([Rank(10, 0), Rank(11, 1)], [starved, quick]))
    ok(not text, "a rank that lacks a CPU is not slow itself", text)


def check_strangers(folder):
    """A process that claims to be rank 1, too, and never waits: of another user, and in another cgroup"""
    def never_waits(r):
        r.computes(99, "save")
        r.waits_until(r.at + 0.0005)

    for what, differs in (("user", {"uid": 2000}), ("cgroup", {"cgroup": "/other"})):
        for number in (1, 2):
            text = straggler(folder, "stranger", train([Rank(10, 0), Rank(11, 1), Rank(12, number, **differs)], [quick, slow, never_waits]))
            ok(text.startswith("rank 1 (a 11) makes the other rank wait"), f"a process of another {what} that claims rank {number} joins no job", text)
            text = straggler(folder, "alone", train([Rank(10, 0), Rank(12, number, **differs)], [quick, never_waits]))
            ok(not text, "nor is it blamed", text)
    tasks = train([Rank(10 + i, i, cgroup=f"/slurm/job_5/step_0/task_{i}") for i in range(2)], [quick, slow])
    ok(straggler(folder, "slurm", tasks).startswith("rank 1 (a 11)"), "Slurm's tasks are one job, though each has its cgroup")
    for differs in ({"parent": 6}, {"wait": "other"}):
        text = straggler(folder, "jobs", train([Rank(10, parent=5), Rank(11, **{"parent": 5, **differs})], [quick, slow]))
        ok(not text, f"without numbers, {list(differs)[0]} shows that processes are not of one job", text)


with tempfile.TemporaryDirectory() as where:
    check_slow(where)
    check_phases(where)
    check_equal(where)
    check_strangers(where)
done()
