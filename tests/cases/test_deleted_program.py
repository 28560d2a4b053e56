#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits
# case: right | py-spy, perf: a program whose file an upgrade has replaced, or that was deleted |
"""Functions have their names, and `sonde why` says that the program's file was deleted or replaced; `doctor` lists its Python."""
import os
import shutil
import time

from case import FOLDER, finish, record, say, script, start
from tap import ok

SPIN = script("loop.py", "def spin():\n    x = 0\n    while True: x = (x * 31 + 7) % 1000003\nspin()\n")

for what in "deleted", "replaced":
    program = os.path.join(FOLDER, what)
    shutil.copy(os.path.realpath("/usr/bin/python3"), program)
    process = start(program, SPIN)
    time.sleep(0.5)
    if what == "replaced":
        shutil.copy("/usr/bin/true", program + ".new")
        os.rename(program + ".new", program)
    else:
        os.unlink(program)
    text = say("report", record("-d", "1", "-F", "99", "-p", process.pid, name=what), "why", process.pid)
    ok(f"Process {process.pid} runs a file that was deleted or replaced since: {program}.\n" in text and "in spin (loop.py:3)" in text, f"why: {what}", text)
    text = say("doctor")
    ok(f"{program} (deleted)" in text, f"doctor: {what}", text)
finish()
