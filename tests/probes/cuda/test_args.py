#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Calls every traced function of the real CUDA runtime once: the arguments in the trace are those passed."""
import os
import shutil

from common import Program, Recording, directory, versions
from tap import done, ok, skip


def expected(path):
    """[(function, event, {field: value})], in order of the calls."""
    calls = []
    for line in open(path):
        function, event, *fields = line.split()
        calls.append((function, event, {k: int(v) for k, v in (f.split("=") for f in fields)}))
    return calls


def value(call, field):
    if field == "flags":
        field = "api_flags"
    if field == "function":
        field = "host_function"
    return call[field]


def check(version, program, tmp, all_calls):
    name = f"CUDA {version}" + (", --cuda=all" if all_calls else "")
    truth = os.path.join(tmp, "truth")
    p = Program(program, truth)
    with Recording(os.path.join(tmp, "trace"), *(["--cuda=all"] if all_calls else [])) as r:
        p.go()
        status = p.wait()
    ok(status == 0 and r.status == 0, f"{name}: program and sonde succeed", status, r.status, r.text)
    calls = r.calls([p.pid]).get((p.pid, p.pid), [])
    want = expected(truth)
    if not all_calls:
        want = [w for w in want if w[1] not in ("cuda_call", "cuda_event")]
    ok([c["function"] for c in calls] == [w[0] for w in want], f"{name}: exactly the program's calls, in order",
       [c["function"] for c in calls], [w[0] for w in want])
    wrong = []
    for call, (function, event, fields) in zip(calls, want):
        got = {k: value(call, k) for k in fields if call["event"] == event}
        if got != fields:
            wrong.append(f"{function}: {call['event']} {got}, not {event} {fields}")
    ok(not wrong, f"{name}: arguments of {len(want)} functions", *wrong)
    ok(not [c for c in calls if c["ret"] != 35 or c["flags"]], f"{name}: return codes",
       [(c["function"], c["ret"], c["flags"]) for c in calls])


def main():
    found = versions("cuda_args")
    if not found:
        skip("arguments", "no CUDA headers and libraries: scripts/cuda.sh 12 13")
    for version, program in found:
        tmp = directory()
        try:
            p = Program(program, os.path.join(tmp, "truth"))
            if p.child.poll() == 77:
                skip(f"CUDA {version}", "a CUDA driver is installed, and the program passes invalid pointers")
                continue
            p.kill()
            check(version, program, tmp, all_calls=version == "13")
        finally:
            shutil.rmtree(tmp)
    done()


main()
