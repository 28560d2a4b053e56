#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | gdb, py-spy: a main thread that has ended makes its process look like a zombie |
"""A process whose main thread has ended is no zombie as long as another thread runs: `dump` and reports have its functions, lines and waits for the GIL."""
from case import finish, record, run, say, script, start
from tap import ok
from waiting import wait_state

program = start("/usr/bin/python3", script("leader.py", """import ctypes, threading, time
def computes():
    while True:
        sum(range(1000))
def waits():
    while True:
        time.sleep(0.005)
threading.Thread(target=computes, name="computer").start()
threading.Thread(target=waits, name="waiter").start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(60, 0)  # exit: of this thread alone
"""), until="ready")
wait_state(program.pid, "Z")
dump = run("dump", program.pid)
ok(not dump.returncode and "computer: running" in dump.stdout and "computes (" in dump.stdout and "waits (" in dump.stdout,
   "sonde dump has the stacks of the others", (dump.returncode, dump.stdout, dump.stderr))
trace = record("-d", 2, "-p", program.pid)
text = say("report", trace)
ok(f"\nleader.py {program.pid} " in "\n" + text and " in computes (leader.py:4)\n" in text, "what computes", text)
ok("s for the GIL in waits (leader.py:7)" in text and "held by computes (leader.py:4)" in text, "who waited for the GIL, and for whom", text)
finish()
