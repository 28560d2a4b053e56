#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | bpftrace, otel's profiler: messages about files of processes that are not recorded |
"""With -p nothing is said of a broken library that only other processes map, and the exit status is 0; if the process itself maps it,
at the start or later, there is a warning."""
import os

from case import FOLDER, finish, run, script, start
from tap import ok

LIBRARY = os.path.join(FOLDER, "libcudart.so.12")
with open(LIBRARY, "wb") as f:
    f.write(b"no ELF file" * 1000)
work = script("work.py", """import mmap, sys, time
if sys.argv[2] != "0":
    print("ready", flush=True)
time.sleep(float(sys.argv[2]))
with open(sys.argv[1], "rb") as f:
    code = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
if sys.argv[2] == "0":
    print("ready", flush=True)
time.sleep(60)
""")
owner = start("/usr/bin/python3", work, LIBRARY, "0", until="ready")
other = start("/usr/bin/python3", work, LIBRARY, "60", until="ready")
later = start("/usr/bin/python3", work, LIBRARY, "3", until="ready")
warning = f"sonde: {LIBRARY}: family cuda: "
for program, seconds, right, name in ((other, 1, (0, False), "another process"), (owner, 1, (3, True), "its own"),
                                      (later, 4, (3, True), "one that maps it later")):
    ended = run("record", "-f", "-o", os.path.join(FOLDER, "x.sonde"), "-d", seconds, "-p", program.pid)
    ok((ended.returncode, warning in ended.stderr) == right, name, (ended.returncode, ended.stderr))
finish()
