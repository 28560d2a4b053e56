#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls of the fake libcudart that end in every way: with results through pointers, nested, by a tail call, by longjmp, never,
with their thread, with their program, nested deeper than sonde stores."""
import os
import shutil

from common import (
    DEPTH,
    HERE,
    OPEN,
    RETURN,
    RETURN_NOT_SEEN,
    Program,
    Recording,
    directory,
    fake_library,
)
from tap import done, ok

CALL_DEPTH = 16  # bpf/core/event.h


def find(calls, function, **fields):
    return [c for c in calls if c["function"] == function and all(c[k] == v for k, v in fields.items())]


def check_results(name, main):
    for function, fields in (
            ("cudaMalloc", {"address": 0x7000000 + 100, "bytes": 100, "ret": 0}),
            ("cudaStreamCreate", {"stream": 0x5151, "ret": 0}),
            ("cudaMemPoolCreate", {"pool": 0x9393, "ret": 0}),
            ("cudaGraphInstantiate", {"graph": 0x9191, "exec": 0x9292, "ret": 0}),
            ("cudaStreamEndCapture", {"stream": 0x5151, "graph": 0x9191, "ret": 0}),
            ("cudaEventElapsedTime", {"from_event": 0xe1, "to_event": 0xe2, "elapsed_ms": 1.5, "ret": 0}),
            ("cudaStreamDestroy", {"stream": 0x5151, "ret": 0x190})):
        ok(len(find(main, function, flags=0, **fields)) == 1, f"{name}: {function}: result and arguments",
           find(main, function))
    waits = find(main, "cudaDeviceSynchronize")
    ok(len(waits) == 1 and waits[0]["time"] - waits[0]["start"] >= 3000000, f"{name}: a wait of 3 ms takes 3 ms", waits)


def within(inner, outer):
    return len(outer) == len(inner) == 1 and \
        outer[0]["start"] <= inner[0]["start"] <= inner[0]["time"] <= outer[0]["time"]


def check_nesting(name, main):
    outer = find(main, "cudaEventRecordWithFlags", ret=7, event_handle=0xe1, stream=0x5150, api_flags=1)
    inner = find(main, "cudaEventRecord", ret=6, event_handle=0xe1, stream=0x5151, api_flags=0)
    ok(within(inner, outer), f"{name}: a nested call", outer, inner)
    outer, inner = find(main, "cudaFreeHost", ret=17), find(main, "cudaFree", ret=17)
    ok(within(inner, outer), f"{name}: a tail call", outer, inner)


def check_unseen_ends(name, threads, r, pid, tids):
    main = threads[pid, tids["main"]]
    left = find(main, "cudaLaunchHostFunc", stream=0x5153)
    after = find(main, "cudaMalloc", bytes=200)
    ok(len(left) == 1 and left[0]["flags"] == RETURN_NOT_SEEN and r.losses()[RETURN] == 1,
       f"{name}: longjmp out of a call is 'return not seen'", left, r.losses())
    ok(len(after) == 1 and after[0]["flags"] == 0 and after[0]["address"] == 0x7000000 + 200 and
       left and left[0]["time"] <= after[0]["start"], f"{name}: the next call is right", after)
    deep = find(main, "cudaLaunchHostFunc", stream=0x5151, flags=0)
    ok(len(deep) == CALL_DEPTH and r.losses()[DEPTH] == 20 - CALL_DEPTH,
       f"{name}: 20 nested calls: {CALL_DEPTH} recorded, the others counted as lost", len(deep), r.losses())
    ok(len(find(main, "cudaMalloc", bytes=300, flags=0)) == 1, f"{name}: the next call is right")
    blocked = threads.get((pid, tids["blocked"]), [])
    ok([(c["function"], c["handle"], c["flags"]) for c in blocked] == [("cudaEventSynchronize", 0xe3, OPEN)] and
       blocked[0]["time"] - blocked[0]["start"] > 100000000, f"{name}: a call that never returns is open", blocked)
    ended = threads.get((pid, tids["ended"]), [])
    ok([(c["function"], c["stream"], c["flags"]) for c in ended] == [("cudaLaunchHostFunc", 0x5152, OPEN)],
       f"{name}: a call that ends with its thread", ended)
    child = threads.get((tids["child"], tids["child"]), [])
    ok([(c["function"], c["stream"], c["flags"]) for c in child] == [("cudaLaunchHostFunc", 0x5154, OPEN)],
       f"{name}: a call that ends with exec", child)


def check(name, test, pid_filter):
    tmp = directory()
    p = Program(os.path.join(HERE, "fake_calls"), fake_library(tmp))
    with Recording(os.path.join(tmp, "trace"), *(["-p", str(p.pid)] if pid_filter else []), test=test) as r:
        p.go()
        pid, main, blocked, ended, child = map(int, p.says().split())
    p.kill()
    ok(r.status == 0, f"{name}: sonde succeeds", r.status, r.text)
    threads = r.calls([pid, child])
    tids = {"main": main, "blocked": blocked, "ended": ended, "child": child}
    check_results(name, threads[pid, main])
    check_nesting(name, threads[pid, main])
    if not pid_filter:
        check_unseen_ends(name, threads, r, pid, tids)
    shutil.rmtree(tmp)


check("session", "", False)
check("multi, -p", "no-session", True)
check("perf, -p", "no-session,no-multi", True)
done()
