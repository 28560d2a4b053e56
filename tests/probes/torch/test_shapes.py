#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--torch=shapes: the sizes and strides of the tensors of each operator's call are those that torch.profiler records with record_shapes. Not compared
are tensors without dimensions and lists of tensors, of which the profiler has no sizes, and arguments on the stack, which sonde does
not record. SONDE_TORCH_PYTHON may list several Pythons.
test: timeout=300 parallel"""
import collections
import json
import os
import subprocess

from tap import done, ok, skip
from torch_env import Recording, pythons, version_of

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = 254, 255  # argument numbers that stand for the results of a convolution, which record_shapes lacks
MISSED_PERCENT = 10  # of the arguments may be missing: they are on the stack, or the operator's registers are not known


def calls_of(r, truth):
    """{name of the operator: [{argument: sizes}]} in order of time"""
    probes = {e["number"]: e["name_text"].split(".")[0] for e in r.trace.events("meta_probe")}
    shapes = collections.defaultdict(dict)
    lists = set()
    for e in r.trace.events("torch_shape"):
        key = e["tid"], e["call_start"]
        if e["element"]:
            lists.add((key, e["argument"]))
        if e["argument"] in RESULTS:
            continue
        sizes, strides = ([e[f"{part}_{i}"] for i in range(min(e["dimensions"], 6))] for part in ("size", "stride"))
        shapes[key][e["argument"]] = sizes, e["elements"], strides, e["type_name"]
    found = collections.defaultdict(list)
    for e in sorted(r.trace.events("torch_op"), key=lambda e: e["start"]):
        if e["pid"] != r.pid or e["handle"] or not truth["start"] <= e["start"] < truth["end"]:
            continue
        key = e["tid"], e["start"]
        found[probes[e["probe"]]].append({n: s for n, s in shapes.get(key, {}).items() if (key, n) not in lists})
    return found


def elements(sizes):
    n = 1
    for size in sizes:
        n *= size
    return n


def check(version, r, truth):
    name, found = f"{version}: {truth['name']}", calls_of(r, truth)
    expected = collections.defaultdict(list)
    for operator, shapes in truth["shapes"]:
        expected[operator].append({n: sizes for n, sizes in enumerate(shapes) if sizes})
    equal, wrong, missed, left_out = 0, [], 0, collections.Counter()
    for operator, calls in found.items():
        if len(calls) != len(expected[operator]):
            wrong.append((operator, len(calls), len(expected[operator])))
            continue
        for got, sought in zip(calls, expected[operator]):
            missed += len(sought.keys() - got.keys())
            left_out.update(f"{operator} {n}" for n in sought.keys() - got.keys())
            for n, (sizes, total, *_) in got.items():
                same = sought.get(n, []) == sizes and (not sizes or total == elements(sizes))
                equal += same and bool(sizes)
                if not same and (sizes or n in sought):
                    wrong.append((operator, n, sizes, total, sought.get(n)))
    ok(equal > 100 and not wrong, f"{name}: sizes are those of record_shapes", f"{equal} equal, {missed} not recorded", *wrong[:5])
    ok(missed * 100 <= MISSED_PERCENT * (equal + missed), f"{name}: most arguments are recorded", f"{missed} of {equal + missed} are not", left_out)
    types = collections.Counter(t for calls in found.values() for call in calls for *_, t in call.values())
    ok(set(types) <= {"TORCH_FLOAT32", "TORCH_INT32", "TORCH_INT64", "TORCH_BOOL", "TORCH_UINT8", "TORCH_FLOAT64"}, f"{name}: types are known", types)


def check_strides(version, r, truth):
    """Of tensors that have sizes in the profiler's export"""
    expected = collections.defaultdict(list)
    for operator, strides in truth["strides"]:
        expected[operator].append(strides)
    wrong, equal, turned = [], 0, set()
    for operator, calls in calls_of(r, truth).items():
        for got, sought in zip(calls, expected[operator]):
            for n, (sizes, _, strides, _) in got.items():
                if not sizes or n >= len(sought) or not sought[n]:
                    continue
                equal += strides == sought[n]
                turned |= {len(strides)} if strides != sorted(strides, reverse=True) else set()
                if strides != sought[n]:
                    wrong.append((operator, n, sizes, strides, sought[n]))
    name = f"{version}: {truth['name']}: strides are those of record_shapes"
    if not any(any(strides) for _, strides in truth["strides"]):
        skip(name, "this version of torch.profiler has none")
        return
    ok(equal > 100 and not wrong, name, f"{equal} equal", *wrong[:5])
    ok(turned >= ({2, 6} if truth["name"] == "Attention" else {2}), f"{version}: {truth['name']}: of matrices that are transposed, too", turned)


def check_export(version, r):
    """Kineto's file has the sizes and strides of the trace; tensors of lists are left out here."""
    out = r.path + ".json"
    subprocess.run([os.environ["SONDE"], "export", r.path, "--to", "kineto", "-p", str(r.pid), "-o", out], check=True, capture_output=True)
    with open(out, encoding="utf-8") as f:
        rows = [e["args"] for e in json.load(f)["traceEvents"] if "Input Dims" in e.get("args", {})]
    found = [pair for row in rows for pair in zip(row["Input Dims"], row["Input Strides"])]
    whole = {"start": 0, "end": 1 << 63}
    expected = [(sizes, strides) for calls in calls_of(r, whole).values() for call in calls for sizes, _, strides, _ in call.values()]
    missing = collections.Counter(map(str, (e for e in expected if e[0]))) - collections.Counter(map(str, found))
    ok(expected and not missing, f"{version}: Kineto's file has the sizes and strides", len(expected), len(found), list(missing.items())[:3])


def check_version(interpreter):
    version = version_of(interpreter)
    r = Recording([interpreter, f"{HERE}/workloads.py", "--shapes", "Training", "Convolution", "Attention"],
                  "--torch=all,shapes,stacks", "--torch-rate", "1000000")
    for truth in map(json.loads, (line for line in r.output if line.startswith("{"))):
        check(version, r, truth)
        check_strides(version, r, truth)
    check_export(version, r)
    lost = [e for e in r.trace.events("meta_loss") if e["family"] == 0x0e and e["pid"] in (0, r.pid)]
    ok(not lost, f"{version}: no record is lost", lost)
    ops = [e for e in r.trace.events("torch_op") if e["pid"] == r.pid]
    ok(ops and all(e["stack"] for e in ops), f"{version}: each operator has a Python stack, too", len(ops), sum(not e["stack"] for e in ops))
    ok(len(list(r.trace.events("torch_cost"))) == 1, f"{version}: the trace states the cost of a call")


for interpreter in pythons():
    check_version(interpreter)
done()
