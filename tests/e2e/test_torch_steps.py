#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""Phases of training steps whose backward pass runs in a thread of the autograd engine, as with a GPU, or in the thread of the loop."""
import json
import tempfile

from planted import make, say
from tap import done, ok

LOOP, ENGINE = 10, 11
HEAD = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="train"', 'proc_task time=@0 pid=10 tid=11 ppid=1 comm="pt_autograd_0"',
        'meta_probe time=@0 number=1 name="aten::mm" program="torch_op" section="-" family=14', "torch_cost time=@0.001 call=1000 own=200",
        'torch_class time=@0.001 pid=10 tid=10 vtable=0xcc10 name="N5torch8autograd9generated14AddmmBackward0E"']
LOADER, STEP = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Optimizer.step#AdamW.step"


def at(ms):
    return f"@{1 + ms / 1e3:.9f}"


def span(event, tid, start, end, rest):
    return f"{event} pid=10 tid={tid} start={at(start)} time={at(end)} {rest}"


def op(tid, start, end):
    return span("torch_op", tid, start, end, "probe=1 sequence=-1 inner=0")


def node(tid, start, end, sequence):
    return span("torch_node", tid, start, end, f"vtable=0xcc10 sequence={sequence} inner=0 made_by=1")


def step(n, engine, numbered, passes=1):
    """
    20 ms: 1 of data, a forward pass of 4, a backward pass of 6 in which no node runs for 1, an optimizer of 2. With passes=2 the pass is
    two of 2, with a forward pass of 1 between them.
    """
    t = n * 20
    number = (lambda i: 100 * n + i) if numbered else lambda i: -1
    lines = [span("torch_range", LOOP, t, t + 1, f'name="{LOADER}"'), op(LOOP, t + 2, t + 3), op(LOOP, t + 5, t + 6)]
    if passes == 1:
        lines += [node(engine, t + 7, t + 9, number(2)), op(engine, t + 9.0, t + 9.1)] if engine != LOOP else [node(engine, t + 7, t + 9, number(2))]
        lines += [node(engine, t + 10, t + 12, number(1)), node(engine, t + 12.05, t + 13, -1)]
    else:
        lines += [node(engine, t + 7, t + 9, number(2)), op(LOOP, t + 9.5, t + 10.5), node(engine, t + 11, t + 13, number(3))]
    return [*lines, span("torch_range", LOOP, t + 15, t + 17, f'name="{STEP}"')]


def phases(folder, name, steps):
    lines = HEAD + [line for s in steps for line in s] + ["meta_end time=@8 reason=END_SIGNAL"]
    steps = json.loads(say("report", make(folder, name, lines, "torch.schema.json"), "steps", "--format", "json"))["tables"]["steps"]
    bad = [s for s in steps if s["step_ns"] != sum(s[p + "_ns"] for p in ("data", "forward", "backward", "optimizer", "collective", "other"))]
    ok(len(steps) == 5 and not bad, f"{name}: the phases of a step are the step", bad or len(steps))
    return {tuple(s[p + "_ns"] / 1e6 for p in ("data", "forward", "backward", "optimizer")) for s in steps}


def main():
    with tempfile.TemporaryDirectory() as folder:
        for engine, thread in ((ENGINE, "engine"), (LOOP, "loop")):
            for numbered in (True, False):
                name = f"{thread}-{'numbered' if numbered else 'unnumbered'}"
                got = phases(folder, name, [step(n, engine, numbered) for n in range(6)])
                ok(got == {(1, 4, 6, 2)}, f"{name}: each phase has its time", got)
                got = phases(folder, name + "-two", [step(n, engine, numbered, 2) for n in range(6)])
                ok(got == {(1, 5, 4, 2)}, f"{name}: of two passes in a step, what runs between them is a forward pass", got)
    done()


main()
