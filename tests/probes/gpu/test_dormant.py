#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The shim costs nothing without a tracer, in a minute of simulated training (DORMANT seconds; `make stress`: an hour)."""
# test: timeout=240 parallel waits
import os
import shutil
import time

from shim_lib import CONSUMER, DOUBLES, Shimmed, sleeping_copy, versions
import proc_files
from tap import done, ok
from waiting import wait_for

ASLEEP = sleeping_copy()
SECONDS = int(os.environ.get("DORMANT", 60))
NAME = "sonde-cupti"


def threads(pid):
    """{(name, tid): (voluntary context switches, ns on a CPU)}"""
    found = {}
    for tid in proc_files.threads(pid):
        status, ran = proc_files.status(pid, tid), proc_files.read(f"/proc/{pid}/task/{tid}/schedstat")
        if status and ran:
            found[status["Name"], tid] = int(status["voluntary_ctxt_switches"]), int(ran.split()[0])
    return found


def begin(version, *libraries):
    # the number of steps does not grow with the time, as the truth has a line for each kernel
    r = Shimmed(version, "-w", "-t", "2", "-n", "100000000", "-p", str(SECONDS * 330), wait=False, SHIM_LATER="1",
                LD_PRELOAD=":".join((ASLEEP, CONSUMER, *libraries)), CUDA_INJECTION64_PATH=ASLEEP)
    r.child.stdout.readline()
    r.child.stdin.write("\n")
    r.child.stdin.flush()
    return r


def check(label, r, before, after, passed, calls):
    shim = [(after[k][0] - before[k][0], after[k][1] - before[k][1]) for k in after if k[0] == NAME and k in before]
    cpu = sum(ran for _, ran in shim)
    print(f"# {label}: {shim[0][0]} voluntary switches and {cpu / 1e6:.2f} ms of CPU time in {passed:.1f} s"
          if shim else f"# {label}: no thread of the shim")
    ok(len(shim) == 1 and shim[0][0] <= passed + 2, f"{label}: one thread, which wakes at most once a second", shim, passed)
    # a usual machine takes 1 or 2 ms of 60 s; the limit is well above that
    ok(cpu < passed * 1e9 / 1000, f"{label}: no significant CPU time", cpu)
    others = {k for k in after if k[0] != NAME}
    ok(len(others) == 3 and others == {k for k in before if k[0] != NAME}, f"{label}: no other thread was created", sorted(after))
    maps = open(f"/proc/{r.child.pid}/maps").read()
    ok(ASLEEP in maps and ("libcupti" in maps) == calls, f"{label}: the shim is loaded; CUPTI is {'the program' if calls else 'not loaded'}")
    r.child.terminate()
    r.finish()
    notes = {e["name"]: e["bytes"] for e in r.truth["note"]}
    ok(r.status == 0 and len(r.truth["kernel"]) > 20000 and not any(e["traced"] for e in r.truth["kernel"]),
       f"{label}: {len(r.truth['kernel'])} kernels ran, none was traced", r.status, r.errors)
    ok(not any(r.got.values()) and (not os.path.exists(r.out) or not os.path.getsize(r.out)), f"{label}: the probe site was not hit",
       dict(r.got))
    if calls:
        ok(notes == {"cupti_calls": 0}, f"{label}: no call of CUPTI", notes)


version = versions()[-1]
alone = begin(version)
# linked to the program, as in PyTorch
linked = begin(version, os.path.join(DOUBLES, version, f"libcupti.so.{version}"))
runs = (("dormant", alone, False), ("dormant, with CUPTI loaded", linked, True))
# at first the shim looks for a tracer more often: until it has slept for more than half a second
def is_quiet(pid):
    before = [n for (name, _), (n, _) in threads(pid).items() if name == NAME]
    time.sleep(0.6)
    return len(before) == 1 and len(threads(pid)) == 4 and before == [n for (name, _), (n, _) in threads(pid).items() if name == NAME]


wait_for(lambda: all(is_quiet(r.child.pid) for _, r, _ in runs), 60)
first, began = [threads(r.child.pid) for _, r, _ in runs], time.monotonic()
time.sleep(SECONDS)
last, took = [threads(r.child.pid) for _, r, _ in runs], time.monotonic() - began
for (name, run, has_cupti), a, b in zip(runs, first, last):
    check(name, run, a, b, took, has_cupti)
shutil.rmtree(os.path.dirname(ASLEEP))
done()
