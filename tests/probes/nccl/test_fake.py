#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Communicators of a fake libnccl: created before the trace, created in every way, destroyed and created again, in a child process;
with and without debug information. Also results through pointers, and a call that never returns.
test: timeout=300 gate"""
import os
import shutil
import subprocess

from common import FAKE, HERE, Program, Recording, directory
from tap import done, ok, skip
from waiting import wait_for

OPEN = 1
PAUSE = "34"  # of x86-64's system calls
FROM_CALL, FROM_MEMORY = 1, 2
# name: (rank, size, device, hash), as created by comms.c with tests/fakes/libnccl.c
OLDER = {"older": (3, 8, 6, 0xfeedf00d), "child": (3, 8, 6, 0xfeedf00d), "asked": (4, 9, 6, 0xbeef)}
MADE = {"init": (11, 16, 6, 0x1234), "scalable": (31, 32, 6, 0x5ca1ab1e), "join": (17, 18, 5, 0x9109),
        "all0": (0, 3, 7, 0xa11), "all1": (1, 3, 4, 0xa11), "all2": (2, 3, 1, 0xa11),
        "group": (63, 64, 6, 0x6109), "first": (1, 4, 6, 0xa), "second": (2, 5, 6, 0xb)}
# the calls that create these don't have the rank
DERIVED = {"split": (2, 8, 6, 0x1234 + 3), "shrink": (10, 15, 6, 0x1234 + 100), "grow": (11, 17, 5, 0x9109)}


def run(library, tmp, test=""):
    """(recording, {name: (pid, communicator)})"""
    p = Program(os.path.join(HERE, "comms"), library)
    names = {}
    with Recording(os.path.join(tmp, "trace"), "-p", str(p.pid), test=test) as r:
        p.go()
        while not {"done", "tid"} <= set(names):
            name, pid, address = p.child.stdout.readline().split()
            names[name] = (int(pid), int(address))
        # the last thread hangs in its call
        ok(wait_for(lambda: open(f"/proc/{p.pid}/task/{names['tid'][0]}/syscall").read().split()[0] == PAUSE, 60), "a thread hangs")
    p.kill()
    return r, names, p.pid


def described(r, names):
    """{name: [(rank, size, device, hash, source)]}, ordered by time, which also distinguishes the two communicators at one address"""
    events = sorted(r.trace.events("nccl_communicator"), key=lambda e: e["time"])
    found = {n: [(e["rank"], e["size"], e["device"], e["hash"], e["source"]) for e in events
                 if (e["pid"], e["comm"]) == names[n]] for n in names if n not in ("done", "tid")}
    assert names["first"] == names["second"]
    # by their sizes, 4 and 5
    for name, size in (("first", 4), ("second", 5)):
        found[name] = [f for f in found[name] if f[1] == size]
    return found, len(events)


def check_with(r, names, how):
    found, n = described(r, names)
    for name, want in {**OLDER, **MADE, **DERIVED}.items():
        expect = [want + (FROM_MEMORY,)]
        if name == "group": # before its first use only the creating call is known
            expect.insert(0, want[:2] + (-1, 0, FROM_CALL))
        ok(found[name] == expect, f"{how}: communicator '{name}' is described once, as {want}", found[name])
    ok(n == len(OLDER) + len(MADE) + len(DERIVED) + 1, f"{how}: no other communicator is described", n)


def check_without(r, names):
    found, _ = described(r, names)
    wrong = {n: f for n, f in found.items() if n in MADE and
             f != [MADE[n][:2] + (MADE[n][2] if n.startswith("all") else -1, 0, FROM_CALL)] and n != "join"}
    ok(not wrong, "without debug information: new communicators are described by their creating call", wrong)
    wrong = {n: found[n] for n in (*OLDER, *DERIVED) if found[n] and n != "grow"}
    ok(not wrong, "without debug information: older ones are not described", wrong)


def one(calls, function, **fields):
    found = [c for c in calls if c["function"] == function and all(c[k] == v for k, v in fields.items())]
    return ok(len(found) == 1, f"{function}: {fields}", [c for c in calls if c["function"] == function])


def check_calls(r, names, pid):
    threads = r.calls([pid])
    main, comm = threads[pid, pid], names["asked"][1]
    one(main, "ncclCommGetAsyncError", event="nccl_query", comm=comm, value=6, ret=0)
    one(main, "ncclCommRegister", event="nccl_memory", comm=comm, address=1, bytes=2, handle=0x4a4d)
    one(main, "ncclMemAlloc", event="nccl_memory", address=0x7000, bytes=5)
    one(main, "ncclRedOpCreatePreMulSum", event="nccl_reduction", comm=comm, op=5, datatype=7)
    one(main, "ncclNotYetKnown", event="nccl_call", ret=3)
    one(main, "ncclGetErrorString", event="nccl_other", ret=0)
    one(main, "ncclBcast", event="nccl_collective", count=10, bytes=80, root=2, send=1, recv=1, comm=comm)
    one(main, "ncclBroadcast", event="nccl_collective", count=10, bytes=80, root=2, send=1, recv=1, comm=comm)
    one(main, "ncclAllReduce", count=9, ret=5, stream=0)
    one(main, "ncclCommInitRank", rank=2, size=2, ret=4, comm=0)
    one(main, "ncclCommInitRank", rank=63, size=64, ret=7, comm=names["group"][1], unique_id=0x6109)
    one(main, "ncclCommInitAll", size=3, comm=names["all0"][1], parent=0)
    one(main, "ncclCommSplit", color=-1, comm=0, parent=names["init"][1])
    one(main, "ncclCommShrink", comm=names["shrink"][1], parent=names["init"][1])
    one(main, "ncclCommGrow", size=17, rank=-1, parent=names["init"][1])
    one(main, "ncclCommDestroy", comm=names["first"][1], ret=0)
    for count in (5, 6):
        one(main, "ncclAllReduce", count=count, ret=0)
    hung = threads[pid, names["tid"][0]]
    ok([(c["function"], c["flags"], c["comm"]) for c in hung] == [("ncclAllReduce", OPEN, names["older"][1])],
       "a hanging collective is an open call", hung)


def main():
    tmp = directory()
    library = os.path.join(tmp, "libnccl.so.2")
    shutil.copy(FAKE, library)
    r, names, pid = run(library, tmp)
    ok(r.status == 0 and not r.losses(pid), "no losses", r.status, r.losses(), r.text)
    check_with(r, names, "session")
    check_calls(r, names, pid)
    r, names, pid = run(library, tmp, "no-session")
    check_with(r, names, "multi, -p")
    if not shutil.which("strip"):
        skip("without debug information", "strip is not installed")
    else:
        other = os.path.join(tmp, "libnccl.so.3")
        subprocess.run(["strip", "--strip-debug", "-o", other, FAKE], check=True)
        r, names, pid = run(other, tmp)
        why = {k: e["why"] for k, e in r.libraries().items()}
        ok(r.status == 0 and list(why) == [other] and "no debug information" in why[other],
           "without debug information: the trace has the reason", why, r.status, r.text)
        check_without(r, names)
    shutil.rmtree(tmp)
    done()


main()
