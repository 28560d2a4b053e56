#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every function of three versions of the real NCCL: each call of each thread is in the trace once, in order, with its
arguments, return code and a time within the program's own. The libraries' struct layouts are those that gdb prints.
test: timeout=300"""
import os
import re
import shutil
import subprocess

from common import HERE, WANTED, Program, Recording, directory, library
from tap import done, ok, skip

ROUNDS = 200
# Public functions that NCCL calls itself
INNER = {"2.21.5": {(a, b) for a in ("ncclSend", "ncclRecv")
                    for b in ("ncclGroupStart", "ncclGroupEnd", "ncclCommGetAsyncError")}}
MEMBERS = {"start_magic": "startMagic", "end_magic": "endMagic", "hash": "commHash", "rank": "rank", "size": "nRanks",
           "device": "cudaDev"}


def read_truth(path):
    """{tid: [(function, event, ret, before, after, {field: value})]}, in order of the calls."""
    threads = {}
    for line in open(path):
        tid, function, event, ret, before, after, *fields = line.split()
        threads.setdefault(int(tid), []).append(
            (function, event, int(ret), int(before), int(after), {k: int(v) for k, v in (f.split("=") for f in fields)}))
    return threads


def outermost(calls):
    """(calls that are not nested in another, {(outer name, nested name)})"""
    out, inner, last = [], set(), None
    for c in calls:
        if last and c["start"] >= last["start"] and c["time"] <= last["time"]:
            inner.add((last["function"], c["function"]))
            continue
        out.append(c)
        last = c
    return out, inner


def compare(version, truth, got, pid):
    ok({(pid, t) for t in truth} == set(got), f"NCCL {version}: calls of exactly {len(truth)} threads", sorted(truth), sorted(got))
    order, fields, returns, times, nested = [], [], [], [], set()
    for tid, want in truth.items():
        calls, inner = outermost(got.get((pid, tid), []))
        nested |= inner
        # an alias is recorded under the function's name
        names = [w[0][1:] if w[0].startswith("pnccl") else w[0] for w in want]
        if names != [c["function"] for c in calls]:
            order.append((tid, names, [c["function"] for c in calls]))
            continue
        for w, c in zip(want, calls):
            have = {k: c[k] for k in w[5] if k in c}
            if c["event"] != w[1] or have != w[5]:
                fields.append(f"{w[0]}: {c['event']} {have}, not {w[1]} {w[5]}")
            if c["ret"] != w[2] or c["flags"]:
                returns.append((w[0], c["ret"], w[2], c["flags"]))
            if not w[3] <= c["start"] <= c["time"] <= w[4]:
                times.append((w, c["start"], c["time"]))
    total = sum(map(len, truth.values()))
    functions = len({w[0] for t in truth.values() for w in t})
    ok(not order, f"NCCL {version}: {total} calls of {functions} functions, each once, in order", *order)
    ok(not fields, f"NCCL {version}: the arguments of calls", *fields[:10])
    ok(not returns, f"NCCL {version}: the return codes of calls", *returns[:10])
    ok(not times, f"NCCL {version}: times within those of the program", *times[:5])
    ok(nested <= INNER.get(version, set()) | {("ncclBcast", "ncclBroadcast")}, f"NCCL {version}: nested calls: {sorted(nested)}", nested)


def gdb_offsets(path):
    """{member: offset}, or None without gdb"""
    if not shutil.which("gdb"):
        return None
    args = [a for m in MEMBERS.values() for a in ("-ex", f"print/d (unsigned long)&((struct ncclComm *)0)->{m}")]
    out = subprocess.run(["gdb", "-nx", "-batch", *args, path], capture_output=True, text=True).stdout
    return dict(zip(MEMBERS, map(int, re.findall(r"^\$\d+ = (\d+)$", out, re.M))))


def check_layout(version, path, recording):
    found = recording.libraries().get(os.path.realpath(path))
    if not ok(found and not found["why"], f"NCCL {version}: its debug information was read", recording.libraries()):
        return
    have = {k: found[k] for k in MEMBERS}
    want = gdb_offsets(path)
    if not want:
        skip(f"NCCL {version}: the layout is the one that gdb prints", "gdb is not installed")
    else:
        ok(have == want, f"NCCL {version}: the layout is the one that gdb prints: {have}", want)
    print(f"# the answer took {found['took'] / 1e6:.0f} ms")


def check(version, path):
    tmp = directory()
    truth = os.path.join(tmp, "truth")
    p = Program(os.path.join(HERE, f"nccl_calls-{version}"), truth, str(ROUNDS), LD_LIBRARY_PATH=os.path.dirname(path))
    with Recording(os.path.join(tmp, "trace"), "-p", str(p.pid)) as r:
        p.go()
        status = p.wait()
    ok(status == 0 and r.status == 0 and not r.losses(), f"NCCL {version}: no losses", status, r.status, r.losses(),
       r.text)
    compare(version, read_truth(truth), r.calls([p.pid]), p.pid)
    described = list(r.trace.events("nccl_communicator"))
    ok(not described, f"NCCL {version}: invalid communicators are not described", described)
    check_layout(version, path, r)
    shutil.rmtree(tmp)


def main():
    for version in WANTED:
        path = library(version)
        if path and os.path.exists(os.path.join(HERE, f"nccl_calls-{version}")):
            check(version, path)
        else:
            skip(f"NCCL {version}", "NCCL is missing; scripts/nccl.sh downloads it, and scripts/cuda.sh 13 its headers")
    done()


main()
