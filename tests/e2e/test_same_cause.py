#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate timeout=600
"""A table, a time line and a finding that are about the same wait have the same cause for it, and the same time: in all traces of the tree, and in
those of incidents where `make incidents` recorded some."""
import glob
import json
import os
import tempfile

from planted import GOLDEN, ROOT, code, findings, make, off, off_stack, run, say
from tap import done, ok

B = os.environ["B"]
# kinds of findings that are not sums of waits: of spans such as garbage collections, of devices and of calls
OTHERS = {"gc", "import", "straggler", "slow-steps", "small-operators", "tensor-copies", "cpu-fallback", "compile", "gpu-idle", "gpu-ended", "gpu-kernel",
          "gpu-clock", "gpu-shared", "gpu-errors", "copies", "calls", "stuck", "errors", "resent", "page-faults", "memory-growth", "unrecorded"}
# such findings sum the waits of tasks and the steps of training, not those of threads
NOT_OF_THREADS = (" asyncio tasks) ", "a step (median of")
# What one process needed a CPU for is one finding, in the table it is what it ran and what it waited for.
CPU = {"compute": ("compute", "cpu"), "cpu": ("compute", "cpu")}
# A thread with less than a twentieth of its time in a cause does not count in the table; in these findings it may.
LEFT_OUT = {"compute": 0.1, "cpu": 0.1, "cpu-quota": 0.05, "affinity": 0.05}


def report(path, name):
    return json.loads(say("report", path, name, "--format", "json", "-n", "0"))


def wrong_findings(path):
    """The findings of the summary about waits whose cause and time are not in table causes of report offcpu"""
    rows, bad, n = report(path, "offcpu")["tables"]["causes"], [], 0
    for f in report(path, "summary")["findings"]:
        if f.get("kind", "calls") in OTHERS or any(text in f["text"] for text in NOT_OF_THREADS):
            continue
        own = [r for r in rows if r["cause"] in CPU.get(f["kind"], (f["kind"],)) and (f["processes"] > 1 or r["pid"] == f["pid"])]
        ns, left_out = sum(r["ns"] for r in own), LEFT_OUT.get(f["kind"], 0) * f["wall_ns"]
        same = len(own) == 1 and not left_out and (own[0]["times"], own[0]["threads"]) == (f.get("times"), f["threads"])
        # waits for the GIL make one finding in a process
        if ns < f["lost_ns"] - left_out or ((same or f["kind"] == "gil") and ns != f["lost_ns"]):
            bad.append((os.path.basename(path), f["text"], f["lost_ns"], own))
        n += 1
    return bad, n


def wrong_times(path):
    """Rows of table causes with more time than the time line of the process has in this colour"""
    parts, sums, bad = report(path, "timeline")["tables"]["parts"], {}, []
    for part in parts:
        for cause, key in (("compute", "run_ns"), ("gil", "gil_ns")):
            sums[part["pid"], cause] = sums.get((part["pid"], cause), 0) + part[key]
    for row in report(path, "summary")["tables"]["causes"]:
        if parts and row["cause"] in ("compute", "gil") and row["ns"] > sums.get((row["pid"], row["cause"]), 0):
            bad.append((os.path.basename(path), row, sums))
    return bad


def check(name, paths):
    bad, n = [], 0
    for path in paths:
        wrong, found = wrong_findings(path)
        bad += wrong + wrong_times(path)
        n += found
    ok(not bad, f"{name}: a finding, the table of causes and the time line agree ({n} findings of {len(paths)} traces)", bad[:5])


def golden(folder):
    """The traces of tests/golden/; a schema that a trace names has the extension .json"""
    for events in sorted(glob.glob(os.path.join(GOLDEN, "*.events"))):
        name = os.path.basename(events)[:-len(".events")]
        with open(events, encoding="utf-8") as f:
            text = f.read()
        named = [line.split(": ")[1] for line in text.splitlines() if line.startswith("# schema: ")]
        own = os.path.exists(os.path.join(GOLDEN, name + ".schema.json"))
        yield make(folder, name, text, named[0] if named else name + ".schema.json" if own else "schema.json")


def check_poll(folder):
    """poll() waits for a peer in the user's code, and for something to do in an event loop: the stack decides, for all of them."""
    lines = []
    for pid, kind, functions in ((10, "peer", ("fetch /app/a.py 7", "poll /lib/libc.so.6")),
                                 (20, "idle", ("run_forever /usr/lib/python3.11/asyncio/base_events.py 600",
                                               "select /usr/lib/python3.11/selectors.py 400", "poll /lib/libc.so.6"))):
        stack, frame = code(pid, *functions)
        lines += [f'proc_task time=@0 pid={pid} tid={pid} ppid=1 comm="{kind}"', *stack]
        for i in range(6):
            lines += [off(pid, pid, 1 + i, 1.9 + i, 1.9 + i, "SCHED_SLEEP"), off_stack(pid, pid, 1 + i, 1.9 + i, frame, "SYS_poll"),
                      run(pid, pid, 1.9 + i, 2 + i)]
        lines += [f"syscall pid={pid} tid={pid} start=@{1 + i} time=@{1.9 + i} nr=SYS_poll ret=1" for i in range(6)]
    found = findings(folder, *lines)
    path = os.path.join(folder, "planted.sonde")
    rows = {(r["pid"], r["cause"]): r for r in report(path, "offcpu")["tables"]["causes"]}
    strips = {t["pid"]: t["strip"] for t in report(path, "timeline")["tables"]["threads"]}
    for pid, kind, letter in ((10, "peer", "s"), (20, "idle", "i")):
        row = rows.get((pid, kind), {})
        ok((row.get("ns"), row.get("times"), row.get("what")) == (5400000000, 6, "poll"), f"a poll that is {kind}: the table has its time", rows)
        ok(letter in strips[pid] and not set("si") - {letter} & set(strips[pid]), f"a poll that is {kind}: so has the time line", strips[pid])
    ok([(f["pid"], f["lost_ns"]) for f in found if f.get("kind") == "peer"] == [(10, 5400000000)], "a poll that is a peer: so has the finding", found)
    check("a poll", [path])


with tempfile.TemporaryDirectory() as tmp:
    check_poll(tmp)
    check("tests/golden", list(golden(tmp)))
    check("docs/demo", sorted(glob.glob(os.path.join(ROOT, "docs", "demo", "*.sonde"))))
    check("incidents", sorted(glob.glob(os.path.join(B, "incidents", "*.sonde"))))
done()
