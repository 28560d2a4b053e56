#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | gdb, py-spy: a main thread that has ended makes its process look like a zombie |
"""A process whose main thread has ended is no zombie as long as another thread runs: `dump` and reports have its functions, lines and waits for the GIL."""
from case import COMPUTES_AND_WAITS, check_computes_and_waits, finish, record, run, script, start
from tap import ok
from waiting import wait_state

program = start("/usr/bin/python3", script("work.py", COMPUTES_AND_WAITS + """import ctypes
threading.Thread(target=computes, name="computer").start()
threading.Thread(target=waits, name="waiter").start()
print("ready", flush=True)
ctypes.CDLL(None).syscall(60, 0)  # exit: of this thread alone
"""), until="ready")
wait_state(program.pid, "Z")
dump = run("dump", program.pid)
ok(not dump.returncode and "computer: running" in dump.stdout and "computes (" in dump.stdout and "waits (" in dump.stdout,
   "sonde dump has the stacks of the others", (dump.returncode, dump.stdout, dump.stderr))
check_computes_and_waits(record("-d", 2, "-p", program.pid), program)
finish()
