#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where a probed return would get a process killed by its seccomp filter no return is probed, and that is said."""
import json
import os
import shutil
import subprocess
import sys

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sonde_trace import Trace
from tap import done, ok, skip

NO_DURATION = 4
CALLS = 500


def doctor(mode):
    done = subprocess.run([SONDE, "doctor", "--format", "json"], capture_output=True, text=True,
                          env={**os.environ, "SONDE_TEST": mode})
    tables = json.loads(done.stdout)["tables"]
    state = {row["check"]: row["state"] for row in tables["checks"]}
    return state.get("returns"), {row["name"]: (row["usable"], row["why"]) for row in tables["families"]}


def record(mode):
    """The calls of a program that makes CALLS, those of them without a duration, and what sonde said."""
    path, library = os.path.join(TMP, f"{mode}.sonde"), os.path.join(TMP, "libcudart.so.12")
    if not os.path.exists(library):
        shutil.copy(os.path.join(B, "tests/fakes/libcudart.so"), library)
    work = subprocess.Popen([os.path.join(B, "tests/workloads/call_flood"), library, "1", str(CALLS)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    work.stdout.readline()
    sonde = subprocess.Popen([SONDE, "record", "-t", "cuda", "-p", str(work.pid), "-o", path], stderr=subprocess.PIPE,
                             text=True, env={**os.environ, "SONDE_TEST": mode})
    said = line = sonde.stderr.readline()
    while line and "tracing into" not in line:
        line = sonde.stderr.readline()
        said += line
    work.communicate("\n", timeout=60)
    said += sonde.communicate(timeout=60)[1]
    calls = list(Trace(path).events("cuda_copy"))
    return sonde.returncode, len(calls), sum(bool(e["flags"] & NO_DURATION) for e in calls), said


def main():
    state, families = doctor("")
    if state is None:
        skip("returns under seccomp", "no uprobe_multi links: returns do not go through a system call")
        done()
    ok(state in ("safe", "no"), "doctor tries a return under a strict seccomp filter", state)
    state, families = doctor("no-returns")
    ok(state == "no", "a process that dies of its return is found", state)
    ok(families["cuda"] == ("partly", "no durations: see returns"), "which makes calls partly usable", families)
    status, calls, short, said = record("no-returns")
    ok(status == 0 and calls == short == CALLS, "then each call is recorded once, at its entry", (status, calls, short, said))
    ok("seccomp" in said, "and it says why there are no durations", said)


if os.geteuid():
    skip("returns under seccomp", "not root")
else:
    main()
done()
