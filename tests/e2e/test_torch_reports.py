#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Reports of PyTorch on loops of a known shape: the phases of their steps, and the causes that are named only where they are true."""
import json
import os
import tempfile

from planted import GOLDEN, code, first_of, say, written
from tap import done, ok

US = 1000
OPERATORS = {"aten::linear": 1, "aten::mm": 2, "aten::topk": 3}
# PyTorch calls forward() of a module here
IN_MODULE = "<module> /srv/net.py 1", "Module._call_impl /torch/nn/modules/module.py 1780"


class Loop:
    """Events of one process, in us since the trace's start."""
    schema = "torch.schema.json"

    def __init__(self, call=0, own=0, costs=""):
        self.at, self.sequence = 1_000_000, 0
        self.lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="python3"',
                      'torch_class time=@0.5 pid=10 tid=10 vtable=0x100 name="N5torch8autograd9generated11MmBackward0E"']
        self.lines += [f"torch_cost time=@0.6 call={call} own={own} {costs}"]
        self.lines += [f'meta_probe time=@0 number={n} name="{name}" program="torch_op" section="-" family=14' for name, n in OPERATORS.items()]

    @staticmethod
    def moment(us):
        return f"@{us // 1_000_000}.{us % 1_000_000:06d}"

    def span(self, kind, us, rest, tid=10):
        self.lines.append(f"{kind} pid=10 tid={tid} start={self.moment(self.at)} time={self.moment(self.at + us)} {rest}")
        self.at += us

    def wait(self, us):
        self.at += us
        return self

    def data(self, us, loader="_MultiProcessingDataLoaderIter"):
        self.span("torch_range", us, f'name="enumerate(DataLoader)#{loader}.__next__"')
        return self

    def operators(self, n, us, between=0, name="aten::linear", rest=""):
        for _ in range(n):
            self.sequence += 1
            self.span("torch_op", us, f"probe={OPERATORS[name]} sequence={self.sequence} {rest}")
            self.at += between
        self.at -= between
        return self

    def backward(self, us, tid=10):
        """A node of the last operator, and one of the first"""
        self.span("torch_node", us // 2, f"vtable=0x100 sequence={self.sequence}", tid)
        self.span("torch_node", us - us // 2, "vtable=0x100 sequence=-1", tid)
        return self

    def optimizer(self, us, name="Optimizer.step#SGD.step"):
        self.span("torch_range", us, f'name="{name}"')
        return self

    def named(self, since, name):
        """A range from a former moment until now"""
        self.lines.append(f'torch_range pid=10 tid=10 start={self.moment(since)} time={self.moment(self.at)} name="{name}"')
        return self

    def path(self, folder, name):
        end = [f"meta_end time={self.moment(self.at + 1000)} reason=END_SIGNAL"]
        return written(folder, name, self.lines + end, self.schema)

    def written(self, folder, name):
        path, found = self.path(folder, name)
        return json.loads(say("report", path, "steps", "--format", "json"))["tables"], found


def phases(row):
    return tuple(row[k + "_ns"] // US for k in ("step", "data", "forward", "backward", "optimizer", "other"))


def check_steps(folder, name, loop, expected, what):
    tables, _ = loop.written(folder, name)
    rows = sorted(tables["steps"], key=lambda r: r["step"])
    ok([phases(r) for r in rows] == expected, what, [phases(r) for r in rows], expected)
    return tables


def check_shapes(folder):
    loop = Loop().optimizer(10)
    for _ in range(2):
        loop.wait(30).data(100).wait(20).operators(3, 50, 10).optimizer(5, "Optimizer.zero_grad#SGD.zero_grad").wait(7).backward(200)
        loop.wait(3).operators(2, 40, 4).wait(6).optimizer(80)
    check_steps(folder, "plain", loop, [(30 + 100 + 20 + 170 + 5 + 7 + 200 + 3 + 84 + 6 + 80,
                100, 170, 200, 5 + 84 + 80, 30 + 20 + 7 + 3 + 6)] * 2,
                "zeroed gradients and operators that clip them are the optimizer's, gaps between phases are other time")
    loop = Loop().optimizer(10)
    for _ in range(2):
        for _ in range(3):
            loop.data(10).operators(1, 50).backward(100)
        loop.optimizer(20)
    check_steps(folder, "accumulation", loop, [(500, 30, 150, 300, 20, 0)] * 2, "gradients are accumulated over three backward passes")
    loop = Loop().optimizer(10)
    for _ in range(3):
        loop.operators(2, 100).backward(300, tid=11).optimizer(50)
    check_steps(folder, "engine", loop, [(550, 0, 200, 300, 50, 0)] * 3, "another thread of the process evaluates the nodes, as with GPUs")
    loop = Loop().optimizer(10, "Optimizer.step#Adam.step")
    for _ in range(2):
        for _ in range(2):
            loop.operators(1, 100).backward(100).optimizer(10)
        loop.operators(1, 100).backward(100).optimizer(10, "Optimizer.step#Adam.step")
    tables = check_steps(folder, "two", loop, [(630, 0, 300, 300, 30, 0)] * 2, "of two optimizers the one that steps least often ends steps")
    ok(tables["loops"][0]["boundary"] == "Optimizer.step#Adam.step", "it is named", tables["loops"])
    loop = Loop().optimizer(10).optimizer(10, "Optimizer.step#Once.step")
    for _ in range(3):
        loop.operators(1, 100).backward(100).optimizer(10)
    tables = check_steps(folder, "once", loop, [(220, 0, 100, 100, 20, 0)] + [(210, 0, 100, 100, 10, 0)] * 2, "one that steps once ends none")
    ok(tables["loops"][0]["boundary"] == "Optimizer.step#SGD.step", "the other is named", tables["loops"])
    loop = Loop().optimizer(10)
    for _ in range(3):
        loop.operators(2, 100).backward(20).backward(300, tid=11).optimizer(50)
    check_steps(folder, "mixed", loop, [(570, 0, 200, 320, 50, 0)] * 3, "the loop's thread and one for a GPU evaluate nodes")
    loop = Loop().optimizer(10)
    for _ in range(3):
        loop.operators(2, 100).backward(20).backward(300, tid=11)
        loop.span("torch_collective", 100, "probe=1", tid=11)
        loop.backward(30, tid=11).optimizer(50)
    tables = check_steps(folder, "hooks", loop, [(700, 0, 200, 350, 50, 0)] * 3, "a thread for a GPU calls collectives in hooks")
    ok([r["collective_ns"] for r in tables["steps"]] == [100 * US] * 3, "and its collectives are a phase", tables["steps"])
    loop = Loop()
    for tid in range(10, 76):
        for _ in range(3):
            loop.span("torch_range", 10, 'name="Optimizer.step#SGD.step"', tid)
    path, _ = loop.path(folder, "many")
    report = json.loads(say("report", path, "steps", "--format", "json"))
    ok(len(report["tables"]["loops"]) == 64 and any(n.startswith("2 further threads") for n in report["notes"]), "loops that are ignored are counted",
       report["notes"])
    loop = Loop()
    for _ in range(4):
        loop.data(100).wait(10).operators(2, 200, 50).wait(40)
    check_steps(folder, "inference", loop, [(600, 100, 450, 0, 0, 50)] * 3, "without an optimizer a step begins with a request for data")


def check_findings(folder):
    for loader, own in (("_MultiProcessingDataLoaderIter", False), ("_SingleProcessDataLoaderIter", True)):
        loop = Loop().optimizer(10)
        for _ in range(10):
            loop.data(60_000, loader).operators(1, 20_000).backward(19_000).optimizer(1000)
        found = first_of(loop.written(folder, "starved")[1], kind="data-loader")
        ok(" waited 60% of 1.000 s for batches of its DataLoader; 60.000 ms a step (median of 10)" in found.get("text", "") and
           found["share_percent"] == 60 and ("num_workers" in found["text"]) == own, f"a loop that waits for {loader} 60% of its time", found.get("text"))
    loop = Loop().optimizer(10)
    for _ in range(10):
        loop.data(9_000).operators(1, 50_000).backward(40_000).optimizer(1000)
    found = loop.written(folder, "fed")[1]
    ok(not first_of(found, kind="data-loader") and not first_of(found, kind="slow-steps") and not first_of(found, kind="small-operators"),
       "of one that waits 9% and whose steps are equal, none of these is said", [f["text"] for f in found])
    loop = Loop().optimizer(10)
    for i in range(20):
        loop.operators(1, 50_000).operators(1, 600_000 if i == 12 else 10_000, name="aten::topk").backward(40_000).optimizer(1000)
    found = first_of(loop.written(folder, "slow")[1], kind="slow-steps")
    ok("1 of 20 steps took longer than 1.5 times the median of 101.000 ms" in found.get("text", "") and
       "590.000 ms more in the forward pass, 590.000 ms in aten::topk itself" in found["text"] and found["lost_ns"] == 590_000_000,
       "a slow step is said, with its phase and the operator", found.get("text"))
    # of 30 us between two the probes take up to 28 us
    for between, call, expected in ((30, 0, True), (8, 0, False), (300, 0, False), (30, 5000, True), (30, 28000, False)):
        loop = Loop(call).optimizer(10)
        for _ in range(10):
            loop.operators(1000, 10, between).backward(1000).optimizer(1000)
        found = first_of(loop.written(folder, "small")[1], kind="small-operators")
        ok(bool(found) == expected,
           f"operators of 10 us with {between} us between them, {call} ns of probes: {'said' if expected else 'not said'}", found.get("text"))
        ok(not expected or f"1,000 operators a step, 10.000 us each, and {between - call // US}.000 us pass between two" in found["text"], "with both times",
           found.get("text"))
    for ranges in (False, True):
        loop = Loop().optimizer(10)
        for _ in range(10):
            since = loop.at
            loop.operators(100, 10, 2).wait(20_000)
            if ranges:
                loop.named(since, "layer")
            loop.operators(100, 10, 2).backward(1000).optimizer(1000)
        found = first_of(loop.written(folder, "sleep")[1], kind="small-operators")
        ok(not found, f"a pause of the program in the pass is none of calls{', also in a range' if ranges else ''}", found.get("text"))


def report(folder, name, loop, *options):
    return json.loads(say("report", loop.path(folder, name)[0], "torch", *options, "--format", "json"))


def check_calls(folder):
    loop = Loop(call=1000, own=200)
    since = loop.at
    found = report(folder, "around", loop.operators(20_000, 10).named(since, "epoch").operators(100, 10))
    whole = 20_100 * 10 / (loop.at + 1000) * 100
    process = found["tables"]["processes"][0]
    ok(abs(process["time_percent"] - whole) < 1, "a range around more calls than wait for it counts their time once", process, whole)
    ok(any("measured cost of the probes at the entries and ends of calls, 20.020 ms in total" in n for n in found["notes"]), "and their cost", found["notes"])
    for name, entry, cold in (("warm", 100, 0), ("cold", 300, 2_000), ("interrupted", 50_000, 10_000)):
        loop = Loop(2600, 1000, "entry=100 hit=1300")
        loop.lines += [f"torch_op pid=10 tid=10 start=@1.000010 time=@1.000030 probe={OPERATORS['aten::mm']} sequence=-1 entry_ns={entry}",
                       f"torch_op pid=10 tid=10 start=@1 time=@1.0001 probe={OPERATORS['aten::linear']} inner=1 hits=1 probes_ns=900 entry_ns=100"]
        times = {row["name"]: row["total_ns"] for row in report(folder, name, loop)["tables"]["operators"]}
        ok(times == {"aten::mm": 19_000, "aten::linear": 100_000 - 4_000 - 900 - cold},
           f"the traps, the programs and what cold caches cost are subtracted from a call around another one: {name}", times)
    loop = Loop()
    since = loop.at
    rows = report(folder, "same", loop.operators(3, 10).wait(10).operators(1, 10).named(since, "aten::linear"))["tables"]["operators"]
    ok(sorted((x["kind"], x["calls"]) for x in rows) == [("operator", 4), ("range", 1)], "a range and an operator of one name are two rows", rows)
    loop = Loop()
    since = loop.at
    for argument in range(2):
        loop.lines.append(f"torch_shape pid=10 tid=10 time={loop.moment(since)} call_start={loop.moment(since)} argument={argument} dimensions=2 "
                          "size_0=100 size_1=100 elements=10000 type=TORCH_FLOAT32")
    found = report(folder, "flops", loop.operators(1, 10, name="aten::mm").operators(20_000, 10).named(since, "epoch"))
    sums = [f["figures"]["flop"] for f in found["findings"] if "flop" in f["figures"]]
    ok(sums == [2 * 100 ** 3], "and its floating-point operations once", sums)
    loop = Loop()
    lines, stack = code(1, *IN_MODULE, "A.forward /srv/net.py 3")
    loop.lines += lines
    found = report(folder, "flat", loop.operators(2 ** 20 + 2, 1, rest=f"stack={stack}"), "--group-by", "module")
    ok(found["tables"]["operators"][0]["calls"] == 2 ** 20 + 2, "a million calls in no other are read", found["tables"])
    ok(any("It is not known to which modules 2 backward nodes belong: the report keeps at most 1,048,576 nodes." in n for n in found["notes"]),
       "the nodes that the last of them created are in no module", found["notes"])


def check_flames(folder):
    loop = Loop()
    since = loop.at
    path, _ = loop.operators(3, 10).wait(5).named(since, "epoch").operators(2, 20, name="aten::mm").path(folder, "flames")
    lines = dict(line.rsplit(" ", 1) for line in say("export", path, "--to", "folded", "--event", "torch").splitlines())
    ok(lines == {"python3 10;epoch": "5000", "python3 10;epoch;aten::linear": "30000", "python3 10;aten::mm": "40000"},
       "folded stacks have the own time of operators and ranges", lines)


def check_old_trace(folder):
    """A trace without probes_ns: torch_cost.entry is a median there, so that every second call is above it."""
    with open(os.path.join(GOLDEN, "torch.schema.json")) as f:
        schema = json.load(f)
    for event in schema["events"]:
        event["fields"] = [field for field in event["fields"] if field["name"] != "probes_ns"]
    with open(os.path.join(folder, "old.schema.json"), "w") as f:
        json.dump(schema, f)
    loop = Loop(2600, 1000, "entry=100 hit=1300")
    loop.lines += [f"torch_op pid=10 tid=10 start=@1.000010 time=@1.000030 probe={OPERATORS['aten::mm']} sequence=-1 entry_ns=5000",
                   f"torch_op pid=10 tid=10 start=@1 time=@1.0001 probe={OPERATORS['aten::linear']} inner=1 hits=1"]
    loop.schema = f.name
    times = {row["name"]: row["total_ns"] for row in report(folder, "old", loop)["tables"]["operators"]}
    ok(times == {"aten::mm": 19_000, "aten::linear": 100_000 - 4_000 - 600 - 300}, "of a trace without probes_ns, medians alone are subtracted", times)


def check_modules(folder):
    """Two threads that have no number yet create their first node in different modules, or in the same one"""
    for names, backward in ((("A", "B"), []), (("A", "A"), [200_000])):
        loop = Loop()
        for number, (tid, name) in enumerate(zip((10, 11), names), 1):
            lines, stack = code(1 if name == "A" else 2, *IN_MODULE, f"{name}.forward /srv/net.py 3")
            loop.lines += lines
            loop.span("torch_op", 10, f"probe=2 sequence=0 stack={stack}", tid)
            loop.span("torch_node", 100, f"vtable=0x100 sequence=0 made_by={number}", tid)
        tables = report(folder, "modules", loop, "--group-by", "module")["tables"]
        found = [row["backward_ns"] for row in tables["modules"] if row["backward_ns"]]
        ok(found == backward, f"first nodes of threads without a number: {names}", tables["modules"])


class Memory(Loop):
    def alloc(self, address, size, start):
        """Of 0 bytes: it is freed."""
        action = "TORCH_ALLOCATED" if size else "TORCH_FREED"
        self.at += 1
        self.lines.append(f"torch_alloc pid=10 tid=10 time={self.moment(self.at)} call_start={self.moment(start)} address={address} bytes={size} "
                          f"action={action}")
        return self

    def steps(self, n, size):
        """Steps that each leave a block of this size"""
        for _ in range(n):
            start = self.at
            self.alloc(start, size, start).named_operator(start).wait(10).optimizer(10)
        return self

    def named_operator(self, start, name="aten::mm"):
        self.lines.append(f"torch_op pid=10 tid=10 start={self.moment(start)} time={self.moment(self.at + 1)} probe={OPERATORS[name]} sequence=-1 inner=0")
        self.at += 1
        return self

    def pause(self, us):
        self.lines.append(f"meta_pause start={self.moment(self.at)} time={self.moment(self.at + us)}")
        return self.wait(us)

    def report(self, folder, name):
        path, found = self.path(folder, name)
        report = json.loads(say("report", path, "torch-memory", "--format", "json"))
        return report, report["tables"]["processes"][0], first_of(found, kind="memory-growth")


def check_memory(folder):
    loop = Memory()
    around = loop.at
    # two blocks are released before a third gets the address of the first, all in one call; then one at that address by
    # another operator
    loop.alloc(1, 1000, around).alloc(2, 100, around).alloc(1, 0, around).alloc(3, 10, around).alloc(2, 0, around)
    inner = loop.wait(10).at
    loop.alloc(1, 5000, inner).named_operator(inner, "aten::topk").wait(10).named_operator(around)
    found, process, _ = loop.report(folder, "reused")
    sites = {row["name"]: (row["peak_bytes"], row["live_bytes"], row["live"]) for row in found["tables"]["sites"]}
    ok(sites == {"aten::topk": (5000, 5000, 1), "aten::mm": (10, 10, 1)} and process["live_bytes"] == process["peak_bytes"] == 5010,
       "memory at an address that is used again within a call is that of the operator that has it now", sites, process)
    found, process, growth = Memory().optimizer(10).steps(20, 8192).report(folder, "grows")
    ok(process["live_bytes"] == 20 * 8192 and "grows by 8.00 KiB a step" in growth.get("text", "") and not any("paused" in n for n in found["notes"]),
       "steps that leave memory", process, growth)
    found, process, growth = Memory().optimizer(10).steps(10, 8192).pause(1000).steps(10, 8192).report(folder, "pauses")
    ok(process["live_bytes"] == process["peak_bytes"] == 10 * 8192 and not growth and any("paused" in n for n in found["notes"]),
       "of blocks from before a pause it is not known whether they were freed", process, growth, found["notes"])


def check_copies(folder):
    loop = Loop()
    loop.lines.append('meta_probe time=@0 number=9 name="aten::item" program="torch_op" section="-" family=14')
    for step in range(4):
        at = f"@{1 + step}.000000"
        loop.lines += [f"torch_op pid=10 tid=10 start={at}001 time={at}001 probe=9 sequence=-1 inner=0",
                       f'torch_range pid=10 tid=10 start={at}000 time={at}003 name="ProfilerStep#{step}"']
    loop.at = 6_000_000
    tables, _ = loop.written(folder, "instant")
    ok(tables["loops"], "steps of nanoseconds with copies that took no time", tables)


with tempfile.TemporaryDirectory() as tmp:
    check_shapes(tmp)
    check_findings(tmp)
    check_calls(tmp)
    check_flames(tmp)
    check_old_trace(tmp)
    check_modules(tmp)
    check_memory(tmp)
    check_copies(tmp)
done()
