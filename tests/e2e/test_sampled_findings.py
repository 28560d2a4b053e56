#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""The finding of `report python` does not call C code below a function calls, as a loop that adds integers makes none."""
import os
import subprocess
import tempfile

import stacks_lib
from tap import done, ok

with tempfile.TemporaryDirectory() as folder:
    s = stacks_lib.Stacks()
    s.line("proc_task", time="@0", pid=100, tid=100, comm=stacks_lib.quoted("py"))
    loop = s.frame(0, s.function("loop", "/srv/app.py", 3), 5)
    add = s.frame(loop, s.function("_PyLong_Add", "/usr/bin/python3.11", 0, stacks_lib.NATIVE))
    for i, stack in enumerate((add, add, add, loop)):
        s.sample(1 + i * 0.01, 100, stack, 10000000)
    out = subprocess.run([os.environ["SONDE"], "report", s.write(folder, "t"), "python"], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
good = out.startswith("100% of 40.000 ms of CPU time was spent in loop (app.py), most of it in C "
                      "(what it calls, or Python's own operations).\n")
ok(good, "a function whose time is mostly in C code below it", out)
done()
