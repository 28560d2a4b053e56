#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A CUDA runtime that a process maps while sonde records: every call after the object is live is recorded, and the time
before that is reported as an attach gap."""
import bisect
import glob
import json
import os
import shutil
import subprocess

from common import BLIND, CUDA, SONDE, Program, Recording, directory, versions
from tap import done, ok, skip

MILLISECONDS = 1500


def report(path, name):
    out = subprocess.run([SONDE, "report", path, name, "--format", "json"], capture_output=True, text=True).stdout
    return json.loads(out or "{}")


def check(version, program, tmp):
    library = os.path.join(tmp, f"libcudart.so.{version}")
    # a copy, which no process has mapped before
    shutil.copy(glob.glob(os.path.join(CUDA, version, "lib", f"libcudart.so.{version}"))[0], library)
    truth, path = os.path.join(tmp, "truth"), os.path.join(tmp, "trace")
    p = Program(program, truth, str(MILLISECONDS), library)
    with Recording(path) as r:
        p.go()
        status = p.wait()
    ok(status == 0 and r.status == 0, f"CUDA {version}: program and sonde succeed", status, r.status, r.text)
    strings = {e["string"]: e["text"] for e in r.trace.events("meta_string")}
    objects = [o for o in r.trace.events("meta_object") if strings.get(o["path"]) == library and o["family"] == 3]
    if not ok(len(objects) == 1 and 0 < objects[0]["first"] < objects[0]["live"], f"CUDA {version}: the late library",
              objects):
        return
    o = objects[0]
    calls = [line.split() for line in open(truth)]
    calls = [(int(c[4]), int(c[5])) for c in calls]  # before, after
    got = r.calls([p.pid]).get((p.pid, p.pid), [])
    live = [c for c in calls if c[0] > o["live"]]
    seen = [e for e in got if e["start"] > o["live"]]
    # the call during which the library went live may have begun before
    ok(0 <= len(seen) - len(live) <= 1 and live, f"CUDA {version}: each of {len(live)} calls after live is recorded",
       len(calls), len(got), len(seen), len(live))
    bad = [e for c, e in zip(reversed(live), reversed(seen)) if not c[0] <= e["start"] <= e["time"] <= c[1]]
    ok(not bad, f"CUDA {version}: their times are within the program's own", bad[:3])
    starts = [c[0] for c in calls]
    before = [calls[max(bisect.bisect_right(starts, e["start"]) - 1, 0)] for e in got]
    invented = [e for c, e in zip(before, got) if not c[0] <= e["start"] <= c[1]]
    ok(not invented, f"CUDA {version}: no other call is recorded", invented[:3])
    blind = [e for e in r.trace.events("meta_loss") if e["reason"] == BLIND]
    ok(len(blind) == 1 and (blind[0]["first"], blind[0]["last"]) == (o["first"], o["live"]),
       f"CUDA {version}: the attach gap is in the trace ({(o['live'] - o['first']) / 1e6:.1f} ms, "
       f"{len(calls) - len(got)} calls)", blind, o)
    reported = report(path, "losses")["tables"]["attach_gaps"]
    gaps = [row for row in reported if os.path.basename(library) in json.dumps(row) and row["attach_gap_ns"] > 0]
    ok(gaps, f"CUDA {version}: and reported by `sonde report losses`", reported)


def main():
    found = versions("cuda_truth")
    if not found:
        skip("late library", "no CUDA headers and libraries: scripts/cuda.sh 12 13")
    for version, program in found:
        tmp = directory()
        check(version, program, tmp)
        shutil.rmtree(tmp)
    done()


main()
