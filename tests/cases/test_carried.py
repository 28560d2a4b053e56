#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | py-spy, bpftrace: programs that carry their interpreter and start it from memory (memfd) |
"""A CPython that was started from memory, and so has no path, is like any other: `dump`, functions and lines, waits for the GIL."""
import os

from case import RUN_BOTH, check_computes_and_waits, finish, record, say, script, start
from tap import ok

work = script("work.py", RUN_BOTH)
program = start("/usr/bin/python3", script("bundle.py", """import os, sys
memory = os.memfd_create("bundle")
with open(os.path.realpath(sys.executable), "rb") as f:
    while os.sendfile(memory, f.fileno(), None, 1 << 30):
        pass
os.execve(memory, ["bundle", sys.argv[1]], {**os.environ, "PYTHONHOME": "/usr"})
"""), work, until="ready")
ok(os.readlink(f"/proc/{program.pid}/exe") == "/memfd:bundle (deleted)", "the program runs from memory")
dump = say("dump", program.pid)
ok("computes (" in dump and "waits (" in dump and "CPython 3.11" in dump.splitlines()[0], "sonde dump", dump)
check_computes_and_waits(record("-d", 2, "-p", program.pid), program)
finish()
