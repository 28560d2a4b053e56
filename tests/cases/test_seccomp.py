#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | bpftrace, Docker: a seccomp filter kills the program for the system call of a return probe |
"""A program whose seccomp filter kills it for a system call that it does not know lives on, and its waits for locks and the GIL are recorded."""
from case import finish, record, say, script, start
from tap import ok

program = start("/usr/bin/python3", script("sandboxed.py", """import ctypes, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
lock = threading.Lock()
def turns():
    while True:
        with lock:
            time.sleep(0.01)
        sum(range(20000))
for _ in range(3):
    threading.Thread(target=turns, daemon=True).start()
# allows the numbers up to 334 (uretprobe has 335), kills for others; for all threads (SECCOMP_FILTER_FLAG_TSYNC)
code = ctypes.create_string_buffer(struct.pack("<" + 4 * "HBBI", 0x20, 0, 0, 0, 0x25, 0, 1, 334, 0x06, 0, 0, 0x80000000, 0x06, 0, 0, 0x7fff0000))
filters = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 4, ctypes.addressof(code)))
libc.prctl(38, 1, 0, 0, 0)
assert not libc.syscall(317, 1, 1, filters), ctypes.get_errno()
print("ready", flush=True)
time.sleep(600)
"""), until="ready")
trace = record("-d", 2, "-t", "+lock,syscall,net,disk", "-p", program.pid)
ok(program.poll() is None, "the program lives")
text = say("report", trace)
ok(" for a lock in turns (sandboxed.py:6)" in text.splitlines()[0], "the first line is the wait for the lock", text)
finish()
