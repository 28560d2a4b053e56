#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=180
# case: right | lslocks, fuser: a process that waits for a lock of a file for ever |
"""The first line says which process holds the lock, of each of the three kinds; `sonde why` of the waiter goes on with what the holder does."""
import os
import time

from case import FOLDER, finish, record, say, script, start
from tap import ok

WORK = script("f.py", """import fcntl, struct, sys, time
path, kind = sys.argv[1:]
def take():
    f = open(path, "w")
    if kind == "flock":
        fcntl.flock(f, fcntl.LOCK_EX)
    else:
        fcntl.fcntl(f, {"posix": fcntl.F_SETLKW, "ofd": 38}[kind], struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    print("taken", flush=True)
    time.sleep(600)
take()
""")

for kind in ("flock", "posix", "ofd"):
    path = os.path.join(FOLDER, kind + ".lock")
    holder = start("/usr/bin/python3", WORK, path, kind, until="taken")
    waiter = start("/usr/bin/python3", WORK, path, kind)
    time.sleep(1)
    call = "flock" if kind == "flock" else "fcntl"
    said = say("report", record("-d", "1", "-p", waiter.pid, name=kind))
    ok(said.startswith(f"f.py {waiter.pid} waited 100% of 1.000 s for a file lock in take (f.py:") and f"in {call} of {path}\n" in said and
       f"held by python3 {holder.pid}\n" in said, f"{kind}: a recording of the waiter alone names the holder", said)
    said = say("report", record("-d", "1", "-p", f"{waiter.pid},{holder.pid}", name=kind))
    ok(f"held by f.py {holder.pid}, which slept in take (f.py:10)" in said, f"{kind}: a recording of both says what the holder does", said)
    if kind == "flock":
        said = say("why", "-d", "1", waiter.pid)
        ok(f"The lock was held by f.py {holder.pid} for 100% of this time.\n  Meanwhile f.py {holder.pid}, 1.000 s of waiting: 100.0% slept.\n" in said,
           "why goes on with the holder", said)
    waiter.kill()
    holder.kill()
finish()
