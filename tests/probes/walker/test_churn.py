#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""
A program that makes functions and forgets them all the time, so that their code objects' memory is used
again: fewer than one frame in a thousand is unresolved, and none is taken for another.
"""
import walk_lib

TAP = walk_lib.Tap()
SECONDS = 2


def check(python):
    run = walk_lib.record(python, "churn", SECONDS)
    c = walk_lib.compare(run)
    frames = unresolved = 0
    for w in run.waits:
        frames += len(w["frames"][0])
        unresolved += sum(1 for name, _, line in w["frames"][0] if not name or not line)
    lost = run.losses[walk_lib.READ] + run.losses[walk_lib.TORN] + c.unwalked
    said = "%d marks, %d waits in them, %d frames, %d unresolved, %d stacks lost, %d wrong; losses %s" % (
        c.marks, c.waits, frames, unresolved, lost, len(c.wrong), dict(run.losses))
    good = c.waits > 50 and not c.wrong and (unresolved + lost) * 1000 < frames
    TAP.ok(good, "functions made and forgotten, " + python.name,
           "\n".join([said] + ["%s: %s" % x for x in c.wrong[:5]]) + "\n" + run.messages + run.printed)
    TAP.note(said)


walk_lib.each_python(TAP, "functions made and forgotten", check)
TAP.end()
