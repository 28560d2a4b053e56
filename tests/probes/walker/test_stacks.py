#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""The stacks of waits are those that the program itself saw: every kind of call, on every CPython there is."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
import tap
import walk_lib

# of the marks: with the GIL free by chance, there is no wait
SEEN = 0.5


def check(python):
    run = walk_lib.record(python, "all")
    c = walk_lib.compare(run)
    name = "every kind of call, " + python.name
    why = ["%d marks, %d seen in %d waits, %d not walked, %d wrong; losses %s" % (
        c.marks, c.seen, c.waits, c.unwalked, len(c.wrong), dict(run.losses))]
    kinds = collections.Counter(kind for kind, _ in c.wrong)
    for kind, what in c.wrong[:10]:
        why.append("%s: %s" % (kind, what))
    why.append(str(kinds))
    good = run.status == 0 and c.marks > 200 and c.seen >= SEEN * c.marks and not c.wrong
    # the stack of the thread that holds the GIL is read while that thread runs: its code may be gone before it is sent
    lost = run.losses[walk_lib.READ] + run.losses[walk_lib.TORN]
    good = good and c.unwalked <= c.waits // 1000 and lost <= 1 + c.waits // 1000
    tap.ok(good, name, "\n".join(why) + "\n" + run.messages + run.printed)
    tap.note(why[0])


walk_lib.each_python("every kind of call", check)
tap.done()
