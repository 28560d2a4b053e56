#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""What a process claims about itself joins it with no other user's process: an account's process waits for a lock whose value names a thread
of root's as the owner, and has the rank of root's job in its environment."""
import json
import os
import subprocess

from account import run_with_account
from sonde_cli import Sonde, tables
from sonde_trace import Trace
from tap import ok

RANK = {"RANK": "0", "WORLD_SIZE": "2"}
# Waits for locks that name this thread (0: another one of its own) as the owner: a robust futex, one like glibc's mutex
WAITS = """import ctypes, os, sys, threading, time
libc, t = ctypes.CDLL(None, use_errno=True), (ctypes.c_long * 2)(0, 200_000_000)
end = threading.Event()
other = threading.Thread(target=end.wait)
other.start()
owner = int(sys.argv[1]) or other.native_id
print(os.getpid(), owner, flush=True)
sys.stdin.readline()
robust, mutex = (ctypes.c_uint * 1)(owner | 0x80000000), (ctypes.c_uint * 3)(2, 0, owner)
for word in (robust, mutex):
    for _ in range(3):
        libc.syscall(202, word, 0, ctypes.c_uint(word[0]), t, None, 0)
end.set()
print("done", flush=True)
sys.stdin.readline()"""


class Waiter:
    def __init__(self, owner, prefix=()):
        self.p = subprocess.Popen([*prefix, "/usr/bin/python3", "-c", WAITS, str(owner)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, **RANK})
        self.pid, self.owner = map(int, self.p.stdout.readline().split())

    def step(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        return self.p.stdout.readline()

    def close(self):
        self.p.communicate("\n")


def test(account, tmp):
    path = os.path.join(tmp, "claims.sonde")
    root = Waiter(0)
    forged = Waiter(root.owner, account.command())
    sonde = Sonde(path, "-t", "proc,lock,sched", "--lock=all")
    pids = {root.pid, forged.pid}
    sonde.wait_trace(lambda trace: pids <= {e["pid"] for e in trace.events("proc_rank")})
    root.step()
    forged.step()
    sonde.end()
    for waiter in (root, forged):
        waiter.close()
    trace = Trace(path)
    users = {e["pid"]: e["uid"] for e in trace.events("proc_image") if e["pid"] in pids}
    ok(users == {root.pid: 0, forged.pid: account.uid}, "a process's image has its user", users, sonde.messages)
    waits = {pid: [e for e in trace.events("lock_wait") if e["pid"] == pid and e["owner"] == root.owner] for pid in pids}
    ok(all(len(found) >= 6 for found in waits.values()), "waits of both have the thread of root's as the owner that the lock names", waits)
    locks = tables("report", path, "locks")
    owners = {pid: {row["owner_tid"] for row in locks["locks"] if row["pid"] == pid} for pid in pids}
    ok(root.owner in owners[root.pid], "report locks has the true owner of root's locks", owners)
    ok(root.owner not in owners[forged.pid], "and no thread of root's as the owner of the account's locks", owners)
    hold = [row for name, table in locks.items() for row in table if row.get("pid") == forged.pid and root.owner in
            [value for key, value in row.items() if key != "pid"]]
    ok(not hold, "no table of report locks names it", hold)
    summary = json.loads(subprocess.run(["sh", "-c", f"exec {os.environ['SONDE']} report {path} --format json"], capture_output=True, text=True,
                                        check=True).stdout)
    blamed = [f for f in summary["findings"] if f.get("figures", f).get("pid") == forged.pid and str(root.owner) in json.dumps(f)]
    ok(not blamed, "no finding about the account's process names it", blamed)


run_with_account(test)
