#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Four threads and two forked children call the real CUDA runtime: the trace has each call of each thread, in order, with its
return code and with times within the program's own, for each kind of link. Perf events are tested with the small fake
libcudart, as each site needs one and the kernel takes up to 0.1 s to detach each.
test: timeout=300 gate"""
import os
import shutil
import sys

from common import (
    Program,
    Recording,
    compare,
    directory,
    fake_library,
    read_truth,
    versions,
)
from tap import done, ok, skip

ROUNDS = 300
ONLY = sys.argv[1:]  # links as named in checks
with open("/sys/kernel/btf/vmlinux", "rb") as f:
    # without uprobe_multi links, returns are probed only in the process of -p, and only entries in children that it
    # forks
    SESSION = b"BPF_TRACE_UPROBE_SESSION" in f.read()


def check(name, program, tmp, pid, test, args=(), durations=lambda pid: True):
    if ONLY and name not in ONLY:
        return
    truth = os.path.join(tmp, "truth")
    fake = {"LD_LIBRARY_PATH": os.path.join(tmp, "fake")} if "perf" in name else {}
    p = Program(program, truth, str(ROUNDS), **fake)
    with Recording(os.path.join(tmp, "trace"), *(["-p", str(p.pid)] if pid else []), *args, test=test) as r:
        p.go()
        status = p.wait()
    want = read_truth(truth, "--cuda=all" in args)
    ok(status == 0 and r.status == 0 and not r.losses(p.pid, *(t[0] for t in want)), f"{name}: no losses", status, r.status,
       r.losses(), r.text)
    main = p.pid
    compare(name, want, r.calls({t[0] for t in want}), lambda pid: durations(pid if pid else main, main))


def main():
    found = versions("cuda_truth")
    if not found:
        skip("counts", "no CUDA headers and libraries: scripts/cuda.sh 12 13")
    tmp = directory()
    os.mkdir(os.path.join(tmp, "fake"))
    for version, program in found:
        check(f"CUDA {version}, session", program, tmp, False, "", ["--cuda=all"], lambda pid, main: SESSION)
    for version, program in found[-1:]:
        fake_library(os.path.join(tmp, "fake"), version)
        check("session, -p", program, tmp, True, "", (), lambda pid, main: SESSION or pid == main)
        check("multi, -p", program, tmp, True, "no-session", (), lambda pid, main: pid == main)
        check("perf, -p", program, tmp, True, "no-session,no-multi", (), lambda pid, main: pid == main)
        check("multi", program, tmp, False, "no-session", (), lambda pid, main: False)
        check("perf", program, tmp, False, "no-session,no-multi", (), lambda pid, main: False)
    shutil.rmtree(tmp)
    done()


main()
