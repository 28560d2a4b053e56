#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""The finding of `report gil` for a server with several workers adds up the time of one function in all of them."""
import os
import subprocess
import tempfile

import stacks_lib
from cards import cards
from sonde_cli import tables
from tap import done, ok

SONDE = os.environ.get("SONDE", "build/test/sonde")


def finding(trace, *options):
    out = subprocess.run([SONDE, "report", trace, "gil", *options], stdout=subprocess.PIPE, text=True, check=True).stdout
    return cards(out)[0][0]


def workers(folder, name, milliseconds):
    """A trace of three processes: encode() delays handle() in two of them, other() in the third."""
    s = stacks_lib.Stacks()
    encode = s.frame(0, s.function("encode", "/srv/app.py", 3), 5)
    other = s.frame(0, s.function("other", "/srv/other.py", 7), 9)
    handle = s.frame(0, s.function("handle", "/srv/app.py", 20), 22)
    for pid, holder, ms in zip((100, 200, 300), (encode, encode, other), milliseconds):
        s.line("proc_task", time="@0", pid=pid, tid=pid, comm=stacks_lib.quoted("worker"))
        s.line("gil_wait", time=f"@{1 + ms / 1000:.3f}", start="@1", pid=pid, tid=pid, stack=handle, holder_stack=holder,
               gil=0x1000 + pid, result=2, locked=1, holder=pid + 1)
    return s.write(folder, name)


with tempfile.TemporaryDirectory() as folder:
    # the largest of one process is not the largest of all
    trace = workers(folder, "spread", (30, 30, 40))
    line = finding(trace)
    ok(line.startswith("60% of all waiting for the GIL was caused by app.py:5 encode in 2 interpreters, holding the GIL for up to ") and
       line.endswith("affected: app.py:22 handle."), "the times of one function in two processes are added up", line)
    line = finding(trace, "-p", "300")
    ok(line.startswith("100% of all waiting for the GIL was caused by other.py:9 other, "), "with one process selected nothing is added up", line)
    rows = tables("report", trace, "gil")["blame"]
    ok(sorted((r["pid"], round(r["share_percent"])) for r in rows) == [(100, 30), (200, 30), (300, 40)],
       "the rows are per process", rows)
    line = finding(workers(folder, "alone", (10, 10, 80)))
    ok(line.startswith("80% of all waiting for the GIL was caused by other.py:9 other in worker 300, "), "one of several processes is named", line)
done()
