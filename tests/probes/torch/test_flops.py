#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Report torch counts as many floating-point operations as torch.utils.flop_counter, operator by operator, and of element-wise operators as many
as torch.profiler; by default and with --torch=all.
test: timeout=300 parallel"""
import json
import os
import subprocess

from tap import done, ok
from torch_env import Recording, python

HERE = os.path.dirname(os.path.abspath(__file__))


def report(r, *options):
    text = subprocess.run([os.environ["SONDE"], "report", r.path, "torch", "--format", "json", *options], capture_output=True, text=True, check=True)
    return json.loads(text.stdout)


def check(r, truth, options):
    start = report(r)["trace"]["start_ns"]
    time = f"{(truth['start'] - start) / 1e9:.9f}..{(truth['end'] - start) / 1e9:.9f}"
    found = report(r, "--time", time)
    rows = {row["name"]: row for row in found["tables"]["operators"]}
    of = lambda name: (rows[name]["flop"], rows[name]["flop_unknown_calls"]) if name in rows else None  # noqa: E731
    wrong = {name: (of(name), n) for name, n in {**truth["flops"], **truth["elements"]}.items() if of(name) != (n, 0)}
    what = f"{truth['name']} {options}"
    ok(truth["flops"] and not wrong, f"{what}: operations of {len(truth['flops'])} operators are those of flop_counter, of "
       f"{len(truth['elements'])} those of torch.profiler", wrong)
    unknown = {name: row["flop_unknown_calls"] for name, row in rows.items() if row["flop_unknown_calls"]}
    ok(not unknown, f"{what}: the sizes of all their tensors are recorded", unknown)
    sums = [f["figures"]["flop"] for f in found["findings"] if "flop" in f["figures"]]
    parts = sum(truth["flops"].values()), sum(truth["elements"].values())
    ok(len(sums) == 1 and parts[0] <= sums[0] <= sum(parts), f"{what}: no operation is counted twice in the sum", sums, parts)


def main():
    for options in (["--torch=shapes"], ["--torch=all", "--torch=shapes"]):
        r = Recording([python(), f"{HERE}/flops.py"], *options)
        truths = [json.loads(line) for line in r.output if line.startswith("{")]
        ok(len(truths) == 3 and not r.status, "all workloads ran", r.status, r.messages)
        for truth in truths:
            check(r, truth, " ".join(options))
    done()


main()
