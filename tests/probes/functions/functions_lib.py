# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings of calls of Python functions: what the trace has of each"""
import collections
import os

import sonde_cli
from sonde_trace import Trace

TRACED, MISSING, REFUSED = 1, 2, 3
HERE = os.path.dirname(os.path.abspath(__file__))


class Calls:
    """The calls in a trace: counts and exceptions by name, the spans, and which functions were traced or refused."""

    def __init__(self, path):
        self.trace = Trace(path)
        self.texts = {(e["pid"], e["number"]): e["text"] for e in self.trace.events("functions_text")}
        self.spans = list(self.trace.events("functions_call"))
        self.counts, self.failed, self.shapes = collections.Counter(), collections.Counter(), collections.defaultdict(collections.Counter)
        for e in self.spans:
            name = self.text(e, "name")
            self.counts[name] += 1
            self.failed[name] += e["failed"]
            if e["shapes"]:
                self.shapes[name][self.text(e, "shapes")] += 1
        self.states = {self.text(e, "name"): (e["state"], e["why"]) for e in self.trace.events("functions_named")}

    def text(self, event, field):
        return self.texts.get((event["pid"], event[field]), "")

    def names(self, state):
        return {name for name, (is_, _) in self.states.items() if is_ == state}


def options(names, module="__main__"):
    return [f"--function={module}:{name}" for name in names]


def record(path, *args, names=(), wait=None, **popen):
    """A recording that traces all these functions"""
    sonde = sonde_cli.Sonde(path, *args, **popen)
    expected = {f"__main__:{name}" for name in names}
    if expected and not sonde.wait_trace(lambda trace: expected <= Calls(path).names(TRACED)):
        raise SystemExit(f"Bail out! not traced: {expected - Calls(path).names(TRACED)} {sonde.messages}")
    return sonde
