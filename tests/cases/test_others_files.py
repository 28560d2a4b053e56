#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | bpftrace, otel's profiler: messages about files of processes that are not recorded |
"""With -p nothing is said of a library that is broken or too large and that only other processes map, and the exit status is 0; if the process itself
maps it, at the start or later, there is a warning."""
import os

from case import FOLDER, finish, run, script, start
from sparse_library import sparse_library
from tap import ok

BROKEN, LARGE = os.path.join(FOLDER, "libcudart.so.12"), os.path.join(FOLDER, "libcudart.so.13")
with open(BROKEN, "wb") as f:
    f.write(b"no ELF file" * 1000)
sparse_library(LARGE, 1000 << 20)
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
for library, words in (BROKEN, "family cuda: "), (LARGE, "sonde leaves this file out: its tables exceed"):
    start("/usr/bin/python3", work, library, "0", until="ready")
    for wait, seconds, right, name in (("60", 1, (0, False), "another process maps it"), ("0", 1, (3, True), "the process maps it"),
                                       ("3", 4, (3, True), "the process maps it later")):
        program = start("/usr/bin/python3", work, library, wait, until="ready")
        ended = run("record", "-f", "-o", os.path.join(FOLDER, "x.sonde"), "-d", seconds, "-p", program.pid)
        ok((ended.returncode, f"sonde: {library}: {words}" in ended.stderr) == right, f"{os.path.basename(library)}: {name}",
           (ended.returncode, ended.stderr))
finish()
