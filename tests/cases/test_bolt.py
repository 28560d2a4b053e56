#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | OpenTelemetry's profiler: functions of CPython that are split and moved, as by BOLT in uv's builds |
"""A CPython whose functions llvm-bolt has reordered and split has one interpreter, the same stacks, lines and waits for the GIL, and each wait once."""
import os
import shutil
import subprocess

from case import FOLDER, RUN_BOTH, check_computes_and_waits, finish, record, say, script, start
from tap import ok, skip_all

BOLT = next((b for b in ("llvm-bolt-16", "llvm-bolt-15", "llvm-bolt-19") if os.path.exists(f"/usr/bin/{b}")), None)
if not BOLT:
    skip_all("needs llvm-bolt: Debian's package bolt-16")
PYTHON, ORIGINAL = os.path.join(FOLDER, "python3"), os.path.join(FOLDER, "original")
# llvm-bolt maps its input, and a mapping shows the breakpoints of a recording beside this test (docs/recording.md)
shutil.copy("/usr/bin/python3", ORIGINAL)
made = subprocess.run([BOLT, ORIGINAL, "-o", PYTHON, "--split-functions", "--split-all-cold", "--reorder-blocks=reverse"],
                      capture_output=True, text=True, check=False)
assert not made.returncode, made.stderr
os.chmod(PYTHON, 0o755)
program = start(PYTHON, script("work.py", RUN_BOTH), until="ready")
dump = say("dump", program.pid)
ok(f"{PYTHON}, CPython 3.11, 2 threads" in dump.splitlines()[0] and dump.count("computes (") == 1 and dump.count("waits (") == 1,
   "sonde dump has each thread once", dump)
check_computes_and_waits(record("-d", 2, "-p", program.pid), program)
finish()
