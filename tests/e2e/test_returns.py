#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""If a probed return would make a seccomp filter kill the process, no return is probed, and sonde reports it."""
import json
import os
import shutil
import subprocess

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
from sonde_cli import Sonde
from sonde_trace import Trace
from tap import done, ok, skip

NO_DURATION = 4
CALLS = 500


def doctor(mode):
    result = subprocess.run([SONDE, "doctor", "--format", "json"], capture_output=True, text=True,
                          env={**os.environ, "SONDE_TEST": mode})
    tables = json.loads(result.stdout)["tables"]
    state = {row["check"]: row["state"] for row in tables["checks"]}
    return state.get("returns"), {row["name"]: (row["usable"], row["why"]) for row in tables["families"]}


def record(mode):
    """(recorded calls of a program that makes CALLS, those without a duration, messages)"""
    path, library = os.path.join(TMP, f"{mode}.sonde"), os.path.join(TMP, "libcudart.so.12")
    if not os.path.exists(library):
        shutil.copy(os.path.join(B, "tests/fakes/libcudart.so"), library)
    work = subprocess.Popen([os.path.join(B, "tests/workloads/call_flood"), library, "1", str(CALLS)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    work.stdout.readline()
    sonde = Sonde(path, "-t", "cuda", "-p", str(work.pid), mode=mode)
    work.communicate("\n", timeout=60)
    status, calls = sonde.end(None), list(Trace(path).events("cuda_copy"))
    return status, len(calls), sum(bool(e["flags"] & NO_DURATION) for e in calls), sonde.messages


def main():
    state, families = doctor("")
    if state is None:
        skip("returns under seccomp", "without uprobe_multi links returns don't use a system call")
        done()
    ok(state in ("safe", "no"), "doctor tests a return under a strict seccomp filter", state)
    state, families = doctor("no-returns")
    ok(state == "no", "doctor reports that a probed return kills a process", state)
    ok(families["cuda"] == ("partly", "no durations: see returns"), "doctor reports families of calls as partly usable", families)
    status, calls, short, said = record("no-returns")
    ok(status == 0 and calls == short == CALLS, "record without returns: each call is recorded once, at its entry", (status, calls, short, said))
    ok("seccomp" in said, "a message says why there are no durations", said)


if os.geteuid():
    skip("returns under seccomp", "not root")
else:
    main()
done()
