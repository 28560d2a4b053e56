#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | py-spy, perf: a package manager has replaced the interpreter of a process that runs on |
"""A process whose interpreter's file was replaced and one that runs the new file: both have their functions, their waits for the GIL, each once."""
import shutil

from case import FOLDER, RUN_BOTH, check_computes_and_waits, finish, record, say, script, start
from tap import ok

PYTHON = FOLDER + "/python3"
work = script("work.py", RUN_BOTH)
shutil.copy("/usr/bin/python3", PYTHON)
old = start(PYTHON, work, until="ready")
shutil.copy("/usr/bin/python3", PYTHON + ".new")
shutil.move(PYTHON + ".new", PYTHON)
new = start(PYTHON, work, until="ready")
dump = say("dump", old.pid)
ok(f"{PYTHON} (deleted), CPython 3.11" in dump.splitlines()[0] and "computes (" in dump and "waits (" in dump, "sonde dump of the old one", dump)
trace = record("-d", 2, "-p", old.pid, "-p", new.pid)
for program in (old, new):
    check_computes_and_waits(trace, program)
finish()
