#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Another user occupies the names and locks by which sondes coordinate: slots of the shim, and the lock for injecting into a process."""
import os
import subprocess
import tempfile
import time

from account import Account
from inject_lib import BUILD, TARGET, Target, inject
from shim_lib import SHIM
from sonde_cli import Sonde
from tap import done, ok, skip_all

HOSTILE = os.path.join(BUILD, "tests", "probes", "gpu", "hostile")
SLOTS = 8  # bpf/core/shim.h
# The names and locks of other versions of sonde: abstract socket names, and a file of /proc that all users may open
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


def slots(account, tmp):
    target = subprocess.Popen([HOSTILE, SHIM], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    squatter = Squatter(account, 0, SLOTS)
    tracer = Sonde(os.path.join(tmp, "squatted.sonde"), "-t", "gpu", "-p", str(target.pid))
    tracer.end()
    squatter.end()
    ok(squatter.ready and "at work already" not in tracer.messages, "names taken by another user don't keep a tracer from its slot",
       tracer.messages)
    target.kill()
    target.wait()


def turns(account):
    took = []
    for squats in (False, True):
        t = Target([TARGET])
        squatter = Squatter(account, t.pid if squats else 0, 0)
        began = time.monotonic()
        r = inject(t.pid)
        took.append(time.monotonic() - began)
        squatter.end()
        t.kill()
    # sonde waits for ten seconds for another one that injects
    ok(squatter.ready and r.returncode == 0 and took[1] < took[0] + 10, "a user's lock on a file of /proc does not delay an injection",
       took, r.stdout, r.stderr)


def main():
    with Account() as account, tempfile.TemporaryDirectory(prefix="sonde-squat-") as tmp:
        if account.why:
            skip_all(f"{account.why}")
        slots(account, tmp)
        turns(account)
    done()


main()
