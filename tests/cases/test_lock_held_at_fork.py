#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=180
# case: partly | Python's warning on fork() with threads | a `threading.Lock` does not show which thread held it
"""The lock was held when the process was forked, by which thread of the parent, and what that one does: it can never be released in the child."""
import os
import signal
import time

from cards import unwrapped
from case import finish, record, say, script, start
from tap import ok

C = script("fork_c.py", """import ctypes, os, sys, threading, time
c = ctypes.CDLL(None); m = ctypes.create_string_buffer(64)
def holder():
    c.pthread_mutex_lock(m)
    print("holder", threading.get_native_id(), flush=True)
    time.sleep(600)
threading.Thread(target=holder, daemon=True).start(); time.sleep(.3)
def need_lock(): c.pthread_mutex_lock(m)
pid = os.fork()
if pid == 0: need_lock()
print("child", pid, flush=True)
os.wait()
""")
PY = script("fork_py.py", """import os, threading, time
m = threading.Lock()
def holder():
    m.acquire()
    time.sleep(600)
threading.Thread(target=holder, daemon=True).start(); time.sleep(.3)
def need_lock(): m.acquire()
pid = os.fork()
if pid == 0: need_lock()
print("child", pid, flush=True)
os.wait()
""")

parent = start("/usr/bin/python3", C, until="child")
holder, child = (line.split()[1] for line in parent.lines)
owner = f"Thread-1 (holder) {holder}"
time.sleep(0.5)
for options in ((), ("-t", "+lock")):
    said = say("report", record("-d", "1", *options, "-p", parent.pid))
    ok(said.startswith(f"fork_c.py {child} waited 100% of 1.000 s for a lock in need_lock (fork_c.py:8)") and
       "it was held when this process was forked, and can never be released here\n" in said and
       f"held by {owner}, which slept in clock_nanosleep in holder (fork_c.py:6)\n" in said, f"a pthread mutex, record {' '.join(options)}", said)
said = say("why", "-d", "1", child)
ok(f"The lock was held by {owner} for 100% of this time. It was held when this process was forked, and can never be released here. " in
   unwrapped(said) and "  Mostly it slept in holder (fork_c.py:6)" in said, "a pthread mutex: why the child waits", said)
os.kill(int(child), signal.SIGKILL)
parent.kill()

parent = start("/usr/bin/python3", PY, until="child")
child = parent.lines[0].split()[1]
time.sleep(0.5)
said = say("report", record("-d", "1", "-p", parent.pid))
ok(said.startswith(f"fork_py.py {child} waited 100% of 1.000 s for a lock in need_lock (fork_py.py:7)") and
   "no other thread is here to release it: this one took it already, or it was held when the process was forked\n" in said, "a threading.Lock", said)
os.kill(int(child), signal.SIGKILL)
parent.kill()
finish()
