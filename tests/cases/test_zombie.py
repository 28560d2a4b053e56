#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | pystack, py-spy: a process that has ended and that its parent has not waited for |
"""The first line says that it is a zombie, and of which parent; the exit status is 1."""
import os

from case import FOLDER, finish, run, start
from tap import ok
from waiting import wait_state

parent = start("/usr/bin/python3", "-c", "import os, time\nchild = os.fork()\nif not child: os._exit(0)\nprint('child', child, flush=True)\ntime.sleep(600)",
               until="child")
child = parent.lines[0].split()[1]
wait_state(int(child), "Z")
for command in (["why", child], ["record", "-d", "2", "-p", child, "-f", "-o", os.path.join(FOLDER, "x.sonde")], ["dump", child]):
    ended = run(*command)
    ok(ended.returncode == 1 and not ended.stdout and ended.stderr.startswith(
        f"sonde: process {child} has ended: it is a zombie, for which its parent {parent.pid} has not waited\n"),
       f"sonde {command[0]} of a zombie", (ended.returncode, ended.stdout, ended.stderr))
finish()
