#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""
A program that constantly creates and drops functions, so that the memory of their code objects is reused, and interpreters that
start and end constantly: fewer than one frame in a thousand is unresolved, and none has a wrong name. The exception is the first
tenth of a second of a function at whose address another one had been for more than a second (docs/python.md).
"""

import tap
import walk_lib

SECONDS = 1


def judge(run, name, enough=50):
    c = walk_lib.compare(run)
    frames = unresolved = 0
    for w in run.waits:
        frames += len(w["frames"][0])
        unresolved += sum(1 for name, _, line in w["frames"][0] if not name or not line)
    lost = run.losses[walk_lib.READ] + run.losses[walk_lib.TORN] + c.unwalked
    said = "%d marks, %d waits in them, %d frames, %d unresolved, %d stacks lost, %d wrong; losses %s" % (
        c.marks, c.waits, frames, unresolved, lost, len(c.wrong), dict(run.losses))
    good = c.waits > enough and not c.wrong and (unresolved + lost) * 1000 < frames and c.unwalked <= walk_lib.counted(run)
    tap.ok(good, name,
           "\n".join([said] + ["%s: %s" % x for x in c.wrong[:5]]) + "\n" + run.messages + run.printed)
    tap.note(said)


def check(python):
    judge(walk_lib.record(python, "churn", SECONDS), "functions made and forgotten, " + python.name)


walk_lib.each_python("functions made and forgotten", check)
HERE = [p for p in walk_lib.pythons()[0].values() if p.root == "/"]
judge(walk_lib.record([p.exe for p in HERE], "many", 6), "interpreters started and ended")
SLOWLY = "functions that live for 1.5 s, after their first 0.11 s"
DEBIAN = walk_lib.pythons()[0].get("3.11 debian")
if DEBIAN:
    judge(walk_lib.after_first(walk_lib.record(DEBIAN, "churn slowly", 4), 110000000), SLOWLY)
else:
    tap.skip(SLOWLY, "there is no python3.11, whose code objects are not counted")

# The worker never adds a process: the BPF programs must recognize a new one by its file, at its exec or its first wait.
for kind, ones in [("a program", [p for p in HERE if ".so" not in p.binary]), ("a library", [p for p in HERE if ".so" in p.binary])]:
    what = "interpreters that the worker does not add, in %s" % kind
    if ones:
        judge(walk_lib.record([ones[-1].exe], "many", 3, switches="late-python"), what, 20)
    else:
        tap.skip(what, "there is none")
# The file is not recognized either: each missing stack is counted.
unknown = walk_lib.record([HERE[0].exe], "many", 2, switches="late-python,no-python-files")
c = walk_lib.compare(unknown)
tap.ok(c.waits > 20 and c.unwalked == c.waits and unknown.losses[walk_lib.UNKNOWN] >= c.unwalked,
       "each missing stack of an unknown process is counted as a loss",
       "%d waits, %d not walked; losses %s\n%s" % (c.waits, c.unwalked, dict(unknown.losses), unknown.messages))
# The attacher refuses a process the first time, as if its data were not mapped yet: the worker repeats the request.
refused = walk_lib.record(HERE[0], "churn", SECONDS, switches="refuse-python,no-python-files")
c = walk_lib.compare(refused)
tap.ok(c.waits > 50 and c.unwalked * 2 < c.waits and c.unwalked <= walk_lib.counted(refused),
       "a process that is refused at first is added later",
       "%d waits, %d not walked; losses %s\n%s" % (c.waits, c.unwalked, dict(refused.losses), refused.messages))
tap.done()
