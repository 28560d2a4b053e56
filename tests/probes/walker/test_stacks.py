#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""The Python stacks of GIL waits are those that the program logged, for every kind of call, on every CPython."""
import collections

import tap
import walk_lib

# share of the marks with a wait: if the GIL happens to be free, there is none
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
    # a holder's stack is read while the holder runs: its code object may be freed before it is sent
    lost = run.losses[walk_lib.READ] + run.losses[walk_lib.TORN]
    good = good and c.unwalked <= c.waits // 1000 and lost <= 1 + c.waits // 1000
    tap.ok(good, name, "\n".join(why) + "\n" + run.messages + run.printed)
    tap.note(why[0])


walk_lib.each_python("every kind of call", check)
tap.done()
