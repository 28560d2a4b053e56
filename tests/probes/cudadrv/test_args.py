#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls functions of the driver once each, with the types of NVIDIA's header: the arguments and results in the trace
are those of the program."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cuda"))
from common import Program, Recording, directory
from drv_lib import BUILT, DRIVER, idle_driver
from tap import done, ok, skip

FIELDS = {"flags": "api_flags", "function": "host_function"}  # named as in common.Recording.calls()
ONLY_ALL = ("cudadrv_call", "cudadrv_event")


def number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def expected(path):
    """[(function, event, returned, {field: value})], in order of the calls."""
    calls = []
    for line in open(path):
        function, event, ret, *fields = line.split()
        calls.append((function, event, int(ret), {k: number(v) for k, v in (f.split("=", 1) for f in fields)}))
    return calls


def check(version, program, options, want_of, filtered=False, test=""):
    name = " ".join([f"CUDA {version}", *options, test])
    tmp = directory()
    truth = os.path.join(tmp, "truth")
    p = Program(program, idle_driver(tmp), truth)
    pid = ["-p", str(p.pid)] if filtered else []
    with Recording(os.path.join(tmp, "trace"), *options, *pid, families="cudadrv", test=test) as r:
        p.go()
        status = p.wait()
    ok(status == 0 and r.status == 0 and not r.losses(p.pid), f"{name}: program and sonde succeed", status, r.status, r.text,
       r.losses())
    calls = r.calls([p.pid], [DRIVER]).get((p.pid, p.pid), [])
    want = want_of(expected(truth))
    ok([c["function"] for c in calls] == [w[0] for w in want], f"{name}: exactly the program's {len(want)} calls, in order",
       [c["function"] for c in calls], [w[0] for w in want])
    wrong = []
    for call, (function, event, ret, fields) in zip(calls, want):
        got = {k: call[FIELDS.get(k, k)] for k in fields if call["event"] == event}
        if got != fields or call["ret"] != ret or call["flags"]:
            wrong.append(f"{function}: {call['event']} {got} = {call['ret']}, not {event} {fields} = {ret}")
    ok(not wrong, f"{name}: arguments and results", *wrong[:20])
    shutil.rmtree(tmp)


def by_default(calls):
    return [c for c in calls if c[1] not in ONLY_ALL]


def with_inner(calls):
    """Adds the functions that the driver calls itself: one by a call, the other by a tail call."""
    out = []
    for c in calls:
        out.append(c)
        if c[0] == "cuLaunchKernel_ptsz":
            out.append(("cuLaunchKernel", "cudadrv_launch", c[2] - 1000, {}))
        if c[0] == "cuMemFreeHost":
            out.append(("cuMemFree_v2", "cudadrv_free", c[2], {}))
    return out


def main():
    found = [(v, os.path.join(BUILT, f"cuda_drv_args-{v}")) for v in ("12", "13")]
    found = [f for f in found if os.path.exists(f[1])]
    if not found:
        skip("arguments", "no CUDA headers: scripts/cuda.sh 12 13")
    for version, program in found:
        check(version, program, [], by_default)
    for version, program in found[-1:]:
        check(version, program, ["--cudadrv=all"], lambda calls: calls)
        check(version, program, ["--cudadrv=nested"], lambda calls: with_inner(by_default(calls)))
        check(version, program, [], by_default, filtered=True, test="no-session")
        check(version, program, [], by_default, filtered=True, test="no-session,no-multi")
    done()


main()
