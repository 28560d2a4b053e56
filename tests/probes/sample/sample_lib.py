# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of sampling: a trace's stacks, shares of time, the installed CPythons."""
import collections
import math
import os
import sys


HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "gil"))

Frame = collections.namedtuple("Frame", "kind name file line")
PYTHON, NATIVE, KERNEL, CUT = 1, 2, 3, 4
WORK = os.path.join(HERE, "sample_work.py")


class Stacks:
    """stack(id): its frames, outermost first"""

    def __init__(self, trace):
        self.texts = {e["string"]: e["text"] for e in trace.events("meta_string")}
        self.codes = {e["code"]: e for e in trace.events("meta_code")}
        self.frames = {e["frame"]: e for e in trace.events("meta_frame")}
        self.known = {0: []}

    def _text(self, ident):
        text = self.texts.get(ident, "")
        return text.decode() if isinstance(text, bytes) else text

    def frame(self, ident):
        f = self.frames[ident]
        c = self.codes.get(f.get("code", 0), {})
        return Frame(f["kind"], self._text(c.get("name", 0)), self._text(c.get("file", 0)), f.get("line", 0))

    def stack(self, ident):
        chain = []
        at = ident
        while at not in self.known:
            chain.append(at)
            at = self.frames[at].get("caller", 0)
        for i in reversed(chain):
            self.known[i] = self.known[at] + [self.frame(i)]
            at = i
        return self.known[ident]


def python_of(stack):
    return [f for f in stack if f.kind == PYTHON]


def shares(weights):
    total = sum(weights.values())
    return {k: 100 * v / total for k, v in weights.items()} if total else {}


def allowed(points, share, samples):
    """The allowed error of a share: this many percentage points, or four standard deviations if there are few samples because the
    program had little CPU time."""
    return max(points, 4 * 100 * math.sqrt(share / 100 * (1 - share / 100) / max(samples, 1)))


def cpu_time(samples, spent):
    """(sampled CPU time divided by the program's own in ns, True if the difference may be by chance). Each tick meets a thread that had a
    part of a CPU with that probability."""
    cpu, wall = sum(e["period"] for e in samples), samples[-1]["time"] - samples[0]["time"] if samples else 0
    chance = 4 * math.sqrt(max(0, 1 - spent / max(wall, 1)) / max(len(samples), 1))
    ratio = cpu / max(spent, 1)
    return ratio, 0.85 - chance < ratio < 1.05 + chance


def worst(truth, seen):
    """(percentage points, name): the largest difference of two distributions"""
    return max((abs(truth.get(k, 0) - seen.get(k, 0)), k) for k in set(truth) | set(seen))
