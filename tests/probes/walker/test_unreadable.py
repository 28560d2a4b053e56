#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
A new code object is read a second time to be sent, and may be freed by then (simulated by SONDE_TEST=unreadable-code): the
stack is lost, which is counted.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sample"))
from recording import Recording
from sample_lib import Stacks, python_of
from tap import done, ok

READ = 9  # LOSS_READ
WORK = """
import sys, time
def compute(end):
    while time.monotonic() < end:
        sum(range(1000))
sys.stdin.readline()
compute(time.monotonic() + 1)
"""


def main():
    os.environ["SONDE_TEST"] = "unreadable-code"
    rec = Recording(["/usr/bin/python3", "-c", WORK], "sample", ["-F", "199"])
    ok(rec.status == 0, "recorded", rec.messages)
    stacks, samples = Stacks(rec.trace), rec.of("sample_cpu")
    walked = [e for e in samples if python_of(stacks.stack(e.get("stack", 0)))]
    ok(len(samples) > 10 and not walked, "no sample has a Python stack", f"{len(walked)} of {len(samples)}")
    lost = sum(e["count"] for e in rec.trace.events("meta_loss") if e["family"] == 0 and e["reason"] == READ)
    print(f"# {len(samples)} samples, {lost} stacks counted as lost")
    ok(lost >= len(samples) / 2, "the stacks are counted as lost", lost)
    done()


main()
