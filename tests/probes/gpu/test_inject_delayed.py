#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits
"""`record --inject` while one user's processes hold their loader's lock: sonde tries three of them and injects another user's process."""
import os
import re
import signal
import subprocess

from account import run_with_account
from inject_lib import BUILD, SONDE, Target, has_shim
from tap import ok
from waiting import wait_for

ODD = os.path.join(BUILD, "tests", "probes", "gpu", "inject_odd")
SLOW = "#include <unistd.h>\n__attribute__((constructor)) static void begin(void) { for (;;) pause(); }\n"
TRIED = 3  # user/cmd/inject_budget.h


def numbers(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def record(pids, path, *more):
    return [SONDE, "record", "--inject", "-t", "gpu", "-p", ",".join(map(str, pids)), "-d", "0.1", "-f", "-o", path, *more]


def compare(stuck, healthy, err):
    """Checks which processes were tried with which time limit, and which were left out."""
    tried = re.findall(r"process (\d+) will have no device times: .* took more than (\d+) s", err)
    ok([int(pid) for pid, _ in tried] == stuck[:TRIED], "the first three are tried, and no other", tried, stuck, err)
    ok([int(limit) for _, limit in tried] == [5, 1, 1], "later processes get less time", tried)
    left_out = re.findall(r"left out, and without device times: process(?:es)? ([\d, ]+), since (.*)", err)
    ok(len(left_out) == 1 and numbers(left_out[0][0]) == stuck[TRIED:], "the others are left out and named", left_out, stuck, err)
    ok(len(left_out) == 1 and "failed slowly" in left_out[0][1] and "`sonde inject PID`" in left_out[0][1],
       "the message has the reason and what injects them", left_out)
    waiting = re.findall(r"waiting for process (\d+)", err)
    ok(len(waiting) == 1 and int(waiting[0]) in (stuck[0], healthy), "one message while sonde waits", waiting, err)
    ok(has_shim(healthy), "another user's process is injected", err)


def tracer(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"^TracerPid:\s+(\d+)", f.read(), re.M)[1])


def interrupted(stuck, path):
    """Ctrl-C while sonde waits: the other processes are not tried."""
    p = subprocess.Popen(record(stuck, path), stderr=subprocess.PIPE, text=True)
    seen = ""
    while "waiting for process" not in seen:
        line = p.stderr.readline()
        if not line:
            break
        seen += line
    p.send_signal(signal.SIGINT)
    seen += p.communicate(timeout=60)[1]
    named = re.findall(r"process (\d+) will have no device times: (.*)", seen)
    ok(named == [(str(stuck[0]), "sonde was stopped meanwhile")] and "left out" not in seen,
       "Ctrl-C while sonde waits: no other process is tried", p.returncode, seen)
    ok(wait_for(lambda: not tracer(stuck[0]), 60), "the borrowed thread is released", tracer(stuck[0]))


def delayed(account, tmp):
    library = os.path.join(tmp, "slow.so")
    subprocess.run(["cc", "-x", "c", "-shared", "-fPIC", "-o", library, "-"], input=SLOW, text=True, check=True)
    os.chmod(library, 0o755)
    targets = [Target(account.command(ODD, "loads", library)) for _ in range(TRIED + 2)]
    healthy = Target([ODD, "idle"])
    try:
        stuck = sorted(t.pid for t in targets)
        ok(all(t.ready for t in targets) and healthy.ready, "the programs continue", [t.first for t in targets])
        path = os.path.join(tmp, "delayed.sonde")
        r = subprocess.run(record([healthy.pid, *stuck], path), capture_output=True, text=True, timeout=90, check=False)
        ok(r.returncode == 3, "exit status 3: not all were injected", r.returncode, r.stderr)
        compare(stuck, healthy.pid, r.stderr)
        interrupted(stuck, path)
    finally:
        for t in (*targets, healthy):
            t.kill()


run_with_account(delayed)
