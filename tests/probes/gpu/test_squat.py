#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Another user who takes what sondes distinguish each other by: slots of the shim, and the turn to load into a process."""
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from account import Account
from inject_lib import BUILD, SONDE, TARGET, Target, inject
from shim_lib import SHIM
from tap import done, ok, skip_all

HOSTILE = os.path.join(BUILD, "tests", "probes", "gpu", "hostile")
SLOTS = 8  # bpf/core/shim.h
# What other versions of sonde took: names in the abstract namespace, and a file of /proc that all users may open
SQUATTER = """
import fcntl, os, socket, sys, time
held = []
for i in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind("\\0sonde-cupti-slot-%d" % i)
    held.append(s)
if sys.argv[1] != "0":
    held.append(open("/proc/%s/status" % sys.argv[1]))
    fcntl.flock(held[-1], fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(100)
"""


class Squatter:
    def __init__(self, account, pid, slots):
        self.child = subprocess.Popen(account.command("/usr/bin/python3", "-c", SQUATTER, str(pid), str(slots)),
                                      stdout=subprocess.PIPE, text=True)
        self.ready = self.child.stdout.readline() == "ready\n"

    def end(self):
        self.child.kill()
        self.child.communicate()


class Tracer:
    """A recording of the shim in one process."""

    def __init__(self, tmp, name, pid):
        self.child = subprocess.Popen([SONDE, "record", "-t", "gpu", "-p", str(pid), "-o", os.path.join(tmp, name)],
                                      stderr=subprocess.PIPE, text=True)
        self.said = ""
        for line in self.child.stderr:
            self.said += line
            if "tracing into" in line:
                break

    def end(self):
        self.child.send_signal(signal.SIGINT)
        self.said += self.child.communicate(timeout=60)[1]


def slots(account, tmp):
    target = subprocess.Popen([HOSTILE, SHIM], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    squatter = Squatter(account, 0, SLOTS)
    tracer = Tracer(tmp, "squatted.sonde", target.pid)
    tracer.end()
    squatter.end()
    ok(squatter.ready and "at work already" not in tracer.said, "names that a user has taken keep no tracer from its slot",
       tracer.said)
    target.kill()
    target.wait()


def turns(account):
    t = Target([TARGET])
    squatter = Squatter(account, t.pid, 0)
    began = time.monotonic()
    r = inject(t.pid)
    took = time.monotonic() - began
    squatter.end()
    t.kill()
    # it waits for ten seconds at most: a slow machine loads in less
    ok(squatter.ready and r.returncode == 0 and took < 10, "a user's lock on a file of /proc holds no injection up",
       took, r.stdout, r.stderr)


def main():
    with Account() as account, tempfile.TemporaryDirectory(prefix="sonde-squat-") as tmp:
        if account.why:
            skip_all(f"{account.why}")
        slots(account, tmp)
        turns(account)
    done()


main()
