# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of sampling: a trace's stacks, shares of time, the installed CPythons."""
import collections
import os
import sys

import bounds
from recording import SLOW
from tap import ok

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


def cpu_time(name, rec, samples, spent):
    """The number of samples in functions against their CPU time in ns by the program's own clock"""
    clock = max(rec.trace.events("sample_clock"), key=lambda e: e["time"])
    missed = clock["missed"] / max(1, clock["ticks"] + clock["missed"])
    expected = spent / clock["period"]
    return bounds.count(name, samples, expected, systematic=missed * expected + rec.steal / clock["period"] + 1,
                        why="ticks are missing while the hypervisor has the CPU, as the trace counts")


SHORTEST_NS = 1_000_000  # the default threshold of --off-cpu
# In a switch the kernel ends and begins a thread's CPU time before the tracepoint, where BPF programs run
SWITCH_NS = 20_000 * SLOW


def off_cpu(name, waits, events, steal):
    """
    The intervals of a thread against what it measured around each wait: (start, end, ns on the CPU, switches). They lie in the waits and
    fill them, but for the CPU time and for those below the threshold, of which there may be one for each switch without an event.
    """
    inside, low, high = 0, -steal, 0
    for start, end, cpu, switches in waits:
        mine = [e for e in events if start <= e["start"] and e["time"] <= end]
        inside += sum(e["time"] - e["start"] for e in mine)
        high += end - start
        low += end - start - cpu - SWITCH_NS * switches - SHORTEST_NS * max(0, switches - len(mine))
    return ok(low <= inside <= high, name, f"{inside} ns in {len(waits)} waits, allowed {low} to {high}")
