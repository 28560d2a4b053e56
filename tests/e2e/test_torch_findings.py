#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Findings and reports on PyTorch in traces that are written for this: a loop that copies tensors, one that compiles, ranks that wait for one,
paths of modules, and loaders without family torch; and traces in which the same is just not true.
test: smoke parallel"""
import json
import os
import tempfile

from planted import (
    END,
    GOLDEN,
    code,
    findings,
    first_of,
    merged_schema,
    off,
    off_stack,
    process,
    run,
    say,
    written,
)
from tap import done, ok

PACKAGES = "/env/lib/python3.11/site-packages/torch"


def steps(copy_ms, extra=()):
    """Ten steps of 10 ms: an operator of 4 ms in the forward pass, and before it a copy of this length"""
    lines = [*process(10, "train"), 'meta_probe time=@0 number=1 name="aten::_to_copy" program="torch_op" section="-" family=14',
             'meta_probe time=@0 number=2 name="aten::mm" program="torch_op" section="-" family=14', "torch_cost time=@0.5 call=0 own=0"]
    for step in range(11):
        at = 1 + step / 100
        lines += [f"torch_op pid=10 tid=10 start=@{at:.6f} time=@{at + copy_ms / 1e3:.6f} probe=1 sequence=-1 inner=0",
                  f"torch_op pid=10 tid=10 start=@{at + 0.004:.6f} time=@{at + 0.008:.6f} probe=2 sequence=-1 inner=0",
                  f'torch_range pid=10 tid=10 start=@{at + 0.009:.6f} time=@{at + 0.0095:.6f} name="Optimizer.step#SGD.step"', *extra]
    return [*lines, "meta_end time=@2 reason=END_SIGNAL"]


def copies(folder):
    found = first_of(written(folder, "copies", steps(2), "torch.schema.json", "proc,torch")[1], kind="tensor-copies")
    ok(abs(found.get("share_percent", 0) - 20) < 0.1 and "aten::_to_copy" in found["text"] and "1 call a step" in found["text"],
       "copies that take a fifth of each step", found)
    found = written(folder, "few", steps(0.9), "torch.schema.json", "proc,torch")[1]
    ok(not first_of(found, kind="tensor-copies"), "copies that take less than a tenth of each step", found)


def fallback(folder):
    """An operator that calls _to_cpu twice and takes 2 or 0.4 ms of each step of 10 ms; _to_cpu in no operator is the program's own."""
    def lines(ms):
        extra = ['meta_probe time=@0 number=3 name="aten::_to_cpu" program="torch_op" section="-" family=14',
                 'meta_probe time=@0 number=4 name="aten::unique_dim" program="torch_op" section="-" family=14']
        for step in range(11):
            at = 1 + step / 100 + 0.0083
            extra += [f"torch_op pid=10 tid=10 start=@{at:.6f} time=@{at + ms / 4e3:.6f} probe=3 sequence=-1 inner=0",
                      f"torch_op pid=10 tid=10 start=@{at + ms / 4e3:.6f} time=@{at + ms / 2e3:.6f} probe=3 sequence=-1 inner=0",
                      f"torch_op pid=10 tid=10 start=@{at:.6f} time=@{at + ms / 1e3:.6f} probe=4 sequence=-1 inner=2",
                      f"torch_op pid=10 tid=10 start=@{at - 0.0002:.6f} time=@{at - 0.0001:.6f} probe=3 sequence=-1 inner=0"]
        return [line for line in steps(0.1) if "torch_range" not in line][:-1] + extra + [
            f'torch_range pid=10 tid=10 start=@{1.0121 + step / 100:.6f} time=@{1.0125 + step / 100:.6f} name="Optimizer.step#SGD.step"' for step in range(11)
        ] + ["meta_end time=@2 reason=END_SIGNAL"]

    found = first_of(written(folder, "fallback", lines(1.6), "torch.schema.json", "proc,torch")[1], kind="cpu-fallback")
    ok(abs(found.get("share_percent", 0) - 16) < 0.1 and found["times"] == 10 and "aten::unique_dim, 10 calls of 1.6" in found["text"],
       "an operator that falls back to the CPU for 16% of the time", found)
    found = written(folder, "short-fallback", lines(0.4), "torch.schema.json", "proc,torch")[1]
    ok(not first_of(found, kind="cpu-fallback"), "one that does so for 4% of the time", found)


def closure(folder):
    """Each step() of the optimizer calls the forward pass (3 ms) and the backward pass (4 ms) as a closure, and then does 2 ms of its own."""
    lines = [*process(10, "train"), 'meta_probe time=@0 number=1 name="aten::mm" program="torch_op" section="-" family=14', "torch_cost time=@0.5 call=0 own=0",
             'torch_class time=@0.9 pid=10 tid=10 vtable=0xcc10 name="N5torch8autograd9generated11MmBackward0E"']
    for step in range(11):
        at = 1 + step / 100
        lines += [f"torch_op pid=10 tid=10 start=@{at + 0.001:.6f} time=@{at + 0.004:.6f} probe=1 sequence={step} inner=0",
                  f"torch_node pid=10 tid=10 start=@{at + 0.004:.6f} time=@{at + 0.008:.6f} vtable=0xcc10 sequence={step} inner=0 made_by=1",
                  f'torch_range pid=10 tid=10 start=@{at:.6f} time=@{at + 0.01:.6f} name="Optimizer.step#Adam.step"']
    path, _ = written(folder, "closure", [*lines, "meta_end time=@2 reason=END_SIGNAL"], "torch.schema.json", "proc,torch")
    rows = json.loads(say("report", path, "steps", "--format", "json"))["tables"]["steps"]
    phases = {tuple(round(row[f"{p}_ns"] / 1e6) for p in ("forward", "backward", "optimizer", "other")) for row in rows}
    ok(len(rows) == 10 and phases == {(3, 4, 2, 1)}, "phases of steps that are closures", (len(rows), phases))


def compiling(times, ms, function="_compile"):
    """A thread that runs for 8 s, and that many times for this long in torch.compile, or in another function of its file"""
    compiles, inner = code(1, "<module> /srv/train.py 1", "step /srv/train.py 12", f"Model.__call__ {PACKAGES}/_dynamo/eval_frame.py 5",
                           f"{function} {PACKAGES}/_dynamo/convert_frame.py 8", "tidy /usr/lib/python3.11/x.py 3")
    other, usual = code(2, "<module> /srv/train.py 1", "step /srv/train.py 12")
    samples = []
    for n in range(1, 9):
        in_compile = n <= times
        samples += [f"sample_cpu time=@{n - 0.9 + i / 100:.6f} pid=10 tid=10 stack={inner if in_compile and i < ms / 10 else usual} period=10000000"
                    for i in range(90)]
    return [*process(10, "train"), *compiles, *other, run(10, 10, 0.01, 7.99), *samples]


def compilations(folder):
    found = first_of(findings(folder, *compiling(4, 300)), kind="compile")
    ok(found.get("times") == 4 and abs(found["share_percent"] - 15) < 1 and "step (train.py:12)" in found["text"] and "recompiles" in found["text"],
       "a function that is compiled four times", found)
    found = first_of(findings(folder, *compiling(1, 600)), kind="compile")
    ok(found.get("times") == 1 and "recompiles" not in found["text"], "a function that is compiled once", found)
    found = findings(folder, *compiling(1, 100))
    ok(not first_of(found, kind="compile"), "a compilation that took a hundredth of the time", found)
    found = findings(folder, *compiling(4, 300, "<module>"))
    ok(not first_of(found, kind="compile"), "an import of the compiler", found)


def modules(folder):
    lines = process(10, "train")
    call = f"Module._call_impl {PACKAGES}/nn/modules/module.py 1780"
    stacks = [("Net", ["main.<locals>.Net.forward /srv/net.py 3"]),
              ("Net > Linear", ["main.<locals>.Net.forward /srv/net.py 3", call, f"Linear.forward {PACKAGES}/nn/modules/linear.py 9"]),
              ("Net > Mlp", ["main.<locals>.Net.forward /srv/net.py 3", call, "can_return.<locals>.forward /srv/wrap.py 1", "Mlp.forward /srv/net.py 30",
                             "Helper.forward /srv/net.py 90"]),
              ("Net > forward (old.py:7)", ["main.<locals>.Net.forward /srv/net.py 3", call, "forward /srv/old.py 7"])]
    none = ["Function.forward /srv/net.py 50"]
    for n, (_, functions) in enumerate([*stacks, ("", none)]):
        outer = ["<module> /srv/net.py 1"] + ([call] if functions is not none else [])
        frames, top = code(n + 1, *outer, *functions)
        lines += frames + [f"sample_cpu time=@{n + 0.5} pid=10 tid=10 stack={top} period={10 ** n}"]
    path, _ = written(folder, "modules", [*lines, END], merged_schema(folder), "proc,sample")
    report = json.loads(say("report", path, "modules", "--format", "json"))["tables"]
    found = {row["module"]: (row["self_ns"], row["total_ns"]) for row in report["modules"]}
    # each stack has code objects of its own, so that the outer module has a row for each
    ok(found.get("Net > Linear") == (10, 10) and found.get("Net > Mlp") == (100, 100) and found.get("Net > forward (old.py:7)") == (1000, 1000),
       "paths of modules: local classes, decorated and helping functions, code without qualified names", found)
    ok(sum(row["self_ns"] for row in report["classes"]) == 1111, "forward() that no module called is none of a module's", report["classes"])


def loaders(folder):
    next_one = f"_MultiProcessingDataLoaderIter.__next__ {PACKAGES}/utils/data/dataloader.py 700"
    wait, top = code(1, "<module> /srv/train.py 1", next_one, f"_MultiProcessingDataLoaderIter._try_get_data {PACKAGES}/utils/data/dataloader.py 900")
    work, busy = code(2, "<module> /srv/train.py 1", next_one, f"_worker_loop {PACKAGES}/utils/data/_utils/worker.py 300", "decode /srv/data.py 7")
    lines = [*process(10, "train"), 'proc_task time=@0 pid=20 tid=20 ppid=10 comm="pt_data_worker"', *wait, *work, run(20, 20, 0.01, 7.99)]
    for n in range(8):
        lines += [run(10, 10, n, n + 0.2), off(10, 10, n + 0.2, n + 0.99, n + 1, "SCHED_SLEEP", 20), off_stack(10, 10, n + 0.2, n + 1, top, "SYS_poll"),
                  f"sample_cpu time=@{n + 0.5} pid=20 tid=20 stack={busy} period=1000000000"]
    path, _ = written(folder, "loader", [*lines, END], merged_schema(folder), "proc,sched,sample")
    report = json.loads(say("report", path, "dataloader", "--format", "json"))
    row, worker, text = report["tables"]["loaders"][0], report["tables"]["workers"][0], report["findings"][0]["text"]
    ok(row["pid"] == 10 and row["workers"] == 1 and abs(row["loader_percent"] - 80) < 1 and row["batches"] is None and row["bound"] == "computing",
       "a loader by stacks alone", row)
    ok(worker["pid"] == 20 and worker["trainer_pid"] == 10 and worker["run_percent"] > 99 and "decode (data.py:7)" in text, "its worker", (worker, text))


def rank_lines(rank, data_ms, first=0, pid=0, parent=1, size=3, waits=lambda step: True):
    """Ten steps of 100 ms of a rank: data_ms(step) in its data loader, then in a collective that ends at 80 ms, then the optimizer"""
    pid = pid or 10 + rank
    lines = [f'proc_task time=@0 pid={pid} tid={pid} ppid={parent} comm="train"',
             f"proc_rank time=@0 pid={pid} tid={pid} rank={rank} world_size={size} local_rank={rank}"]
    for step in range(first, 11):
        at = 1 + step / 10
        loaded = at + data_ms(step) / 1e3
        lines += [f'torch_range pid={pid} tid={pid} start=@{at:.6f} time=@{loaded:.6f} name="enumerate(DataLoader)#_Iter.__next__"',
                  f'torch_range pid={pid} tid={pid} start=@{at + 0.085:.6f} time=@{at + 0.09:.6f} name="Optimizer.step#SGD.step"']
        if waits(step):
            lines += [f"torch_collective pid={pid} tid={pid} start=@{loaded:.6f} time=@{at + 0.08:.6f} probe=1"]
    return lines


def schema_with_rests(folder):
    """The schema of current recordings, which have the rests of a process between its recorded steps"""
    with open(os.path.join(GOLDEN, "torch.schema.json")) as f:
        schema = json.load(f)
    span = next(e for e in schema["events"] if e["name"] == "torch_collective")
    counts = [{"name": name, "type": "unsigned", "size": 8, "offset": span["size"] + 8 * i} for i, name in enumerate(("steps", "cost"))]
    schema["events"].append({**span, "name": "torch_rest", "id": 0x0e0f, "size": span["size"] + 16, "fields": span["fields"] + counts})
    path = os.path.join(folder, "rests.schema.json")
    with open(path, "w") as f:
        json.dump(schema, f)
    return path


def ranks(folder):
    """Rank 1 is slow in each second step, and rank 2, which was recorded one step later, by 10 ms in the others."""
    def lines(slow_ms):
        return ['meta_probe time=@0 number=1 name="c10d::Work::wait" program="torch_collective" section="-" family=14',
                *rank_lines(0, lambda step: 20), *rank_lines(1, lambda step: 20 if step % 2 else slow_ms),
                *rank_lines(2, lambda step: 30 if step % 2 else 20, first=1), "meta_end time=@2.2 reason=END_SIGNAL"]

    path, found = written(folder, "ranks", lines(50), "torch.schema.json", "proc,torch")
    found = first_of(found, kind="straggler")
    ok(found.get("pid") == 11 and abs(found["share_percent"] - 17.5) < 0.1 and "data loading" in found["text"] and "rank 1" in found["text"],
       "a rank that all others wait for", found)
    ok("it delayed each step by 18.000 ms" in found["text"], "by how much in each step", found["text"])
    # collectives are recorded in all steps, operators in some
    rest = "torch_rest pid=11 tid=11 start=@0.5 time=@0.9 steps=30 cost=1000"
    found = first_of(written(folder, "rests", [*lines(50)[:-1], rest, lines(50)[-1]], schema_with_rests(folder), "proc,torch")[1], kind="straggler")
    ok("it delayed each step by 4.500 ms" in found["text"], "in each of all steps, if not all were recorded", found["text"])
    rows = json.loads(say("report", path, "ranks", "--format", "json"))["tables"]["ranks"]
    ok([(r["rank"], r["steps"], round(r["waited_ns"] / 1e7), round(r["delayed_ns"] / 1e7), r["last_collectives"]) for r in rows] ==
       [(0, 10, 23, 0, 0), (1, 10, 5, 18, 6), (2, 9, 15, 5, 5)], "who waited for whom", rows)
    # rank 2 is slow in as many steps as rank 1, and by as much
    in_turns = ['meta_probe time=@0 number=1 name="c10d::Work::wait" program="torch_collective" section="-" family=14',
                *rank_lines(0, lambda step: 20), *rank_lines(1, lambda step: 20 if step % 2 else 60), *rank_lines(2, lambda step: 55 if step % 2 else 20),
                "meta_end time=@2.2 reason=END_SIGNAL"]
    path, found = written(folder, "in-turns", in_turns, "torch.schema.json", "proc,torch")
    text = json.loads(say("report", path, "ranks", "--format", "json"))["findings"][0]["text"]
    ok(not first_of(found, kind="straggler") and text.startswith("No rank"), "two ranks that delay the others in turns", (found, text))
    found = written(folder, "even", lines(36), "torch.schema.json", "proc,torch")[1]
    ok(not first_of(found, kind="straggler"), "a rank that the others wait for less than a tenth of its time", found)


def schema_with_users(folder):
    """The schema of current recordings, in which a process's image has its user"""
    with open(os.path.join(GOLDEN, "torch.schema.json")) as f:
        schema = json.load(f)
    image = next(e for e in schema["events"] if e["name"] == "proc_image")
    image["fields"].append({"name": "uid", "type": "unsigned", "size": 4, "offset": image["size"]})
    image["size"] += 8
    path = os.path.join(folder, "users.schema.json")
    with open(path, "w") as f:
        json.dump(schema, f)
    return path


def told_apart(folder):
    """Which processes are compared: those of one job, and those whose collectives were recorded"""
    def written_ranks(name, *ranks, schema="torch.schema.json"):
        lines = ['meta_probe time=@0 number=1 name="c10d::Work::wait" program="torch_collective" section="-" family=14',
                 *(line for rank in ranks for line in rank), "meta_end time=@2.2 reason=END_SIGNAL"]
        path, found = written(folder, name, lines, schema, "proc,torch")
        report = json.loads(say("report", path, "ranks", "--format", "json"))
        return first_of(found, kind="straggler"), report["tables"]["ranks"], str(report["notes"])

    def job(ms, pid, parent, size=2):
        """Two ranks that load data for these times"""
        return [*rank_lines(0, lambda _: ms[0], pid=pid, parent=parent, size=size), *rank_lines(1, lambda _: ms[1], pid=pid + 1, parent=parent, size=size)]

    def forged():
        """A process of user 1000 that claims to be rank 0 of two, and reaches its collectives last"""
        images = (f"proc_image time=@0 pid={pid} tid={pid} uid={uid}" for pid, uid in ((20, 0), (21, 0), (40, 1000)))
        return [*rank_lines(0, lambda _: 75, pid=40, size=2), *images]

    found, rows, notes = written_ranks("jobs", job((20, 20), 20, 5), job((60, 60), 30, 6))
    ok(not found and len(rows) == 4 and not any(row["waited_ns"] for row in rows) and "same rank" not in notes, "jobs of two launchers", (found, rows))
    found, rows, _ = written_ranks("job-slow", job((20, 20), 20, 5), job((30, 60), 30, 6))
    ok(found.get("pid") == 31 and [row["waited_ns"] // 10 ** 6 for row in rows] == [0, 0, 330, 0], "a slow rank of the second job", (found, rows))
    found, rows, notes = written_ranks("restart", job((20, 20), 20, 5), job((60, 60), 30, 5))
    ok(not found and not any(row["waited_ns"] for row in rows) and "same rank" in notes, "two jobs of one launcher", (found, rows, notes))
    found, rows, _ = written_ranks("sizes", job((20, 20), 20, 5), job((60, 60), 30, 5, size=4))
    ok(not found and not any(row["waited_ns"] for row in rows), "two jobs of different sizes", (found, rows))
    even = [rank_lines(0, lambda _: 20), rank_lines(1, lambda _: 20)]
    found, rows, notes = written_ranks("without", *even, rank_lines(2, lambda _: 20, waits=lambda _: False))
    ok(not found and not any(row["delayed_ns"] for row in rows) and "without collectives" in notes, "a rank without collectives", (found, rows, notes))
    users = schema_with_users(folder)
    found, rows, notes = written_ranks("forged", job((20, 20), 20, 5), forged(), schema=users)
    ok(not found and not any(row["waited_ns"] for row in rows) and "same rank" not in notes, "a rank that another user's process claims", (found, rows, notes))
    found, rows, _ = written_ranks("forged-slow", job((20, 60), 20, 5), forged(), schema=users)
    ok(found.get("pid") == 21 and [row["waited_ns"] // 10 ** 6 for row in rows if row["pid"] == 20] == [440], "and the true ranks beside it", (found, rows))
    found, rows, _ = written_ranks("lost", *even, rank_lines(2, lambda _: 20, waits=lambda step: step % 2))
    ok(not found and not any(row["delayed_ns"] for row in rows), "a rank that lost the collectives of some steps", (found, rows))


def main():
    with tempfile.TemporaryDirectory() as folder:
        copies(folder)
        closure(folder)
        fallback(folder)
        compilations(folder)
        modules(folder)
        loaders(folder)
        ranks(folder)
        told_apart(folder)
    done()


main()
