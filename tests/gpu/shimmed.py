# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program with the shim and its consumer in it: what it wrote down, and what the shim reported. No eBPF takes part."""
import collections
import json
import os

from facts import with_cuda
from lib import read_text
from shim_records import ALL, GRAPHS, IMPAIRED, read_batches

from build import CONSUMER, SHIM, WORK

DEFAULT = ALL | GRAPHS


def environment(run, out, groups=DEFAULT, later=False, injected=True, **more):
    """What makes a program carry the shim. later: it is switched on by a signal."""
    return with_cuda(run, LD_PRELOAD=f"{SHIM}:{CONSUMER}", SHIM_OUT=out, SHIM_GROUPS=groups, SHIM_LATER="1" if later else None,
                     CUDA_INJECTION64_PATH=SHIM if injected else None, **more)


def read_truth(path):
    """Facts (the last of each, all phases) and operations that a program of tests/gpu wrote down."""
    facts, ops = {"phases": [], "missing": [], "each": []}, []
    for line in read_text(path).splitlines():
        try:
            e = json.loads(line)
        except ValueError:  # it was ended while it wrote
            continue
        if "fact" not in e:
            ops.append(e)
        elif e["fact"] == "phase":
            facts["phases"].append(e["value"])
        elif e["fact"] == "missing":
            facts["missing"].append(e["value"])
        else:
            facts[e["fact"]] = e["value"]
            facts["each"].append((e["fact"], e["value"]))
    return facts, ops


class Reported:
    """What the shim said, from the consumer's file or (ebpf.py) from a trace."""

    def __init__(self, got, whole=True):
        self.got, self.whole = got, whole
        self.names = {e["name"]: e["text"] for e in got["name"]}
        self.states = [e["state"] for e in got["shim"] if e["state"] != IMPAIRED]
        self.texts = [e["text"] for e in got["shim"] if e["text"]]
        # the clock's own error, and what CUPTI's conversion of the device's times may add
        self.error = max((e["error"] for e in got["clock"]), default=0) + 2000
        self.dropped = [(e["reason"], e["records"]) for e in got["dropped"]]


def read_reported(path):
    try:
        got, whole = read_batches(path)
    except FileNotFoundError:
        got, whole = collections.defaultdict(list), True
    return Reported(got, whole)


class Shimmed:
    def __init__(self, run, argv, limit, **options):
        self.out, self.truth_path = run.file("shim"), run.file("truth")
        open(self.out, "w").close()  # the program looks at its size
        env = environment(run, self.out, WORK_TRUTH=self.truth_path, WORK_CUDART=run.result["machine"].get("cudart"), **options)
        self.done = run.command([WORK, *argv], limit, env=env)
        self.facts, self.ops = read_truth(self.truth_path)
        self.reported = read_reported(self.out)

    def phase(self, *names):
        """Operations of the phases of these names."""
        numbers = {p["number"] for p in self.facts["phases"] if p["name"] in names}
        return [o for o in self.ops if o["phase"] in numbers]

    def why(self):
        return self.done.why(), self.reported.states, self.reported.texts, os.path.basename(self.out)
