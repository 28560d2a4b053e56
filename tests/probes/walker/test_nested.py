#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""
A program whose time is mostly spent in stack walks of its recorded calls: the sampling program interrupts these walks, and
each of its samples must still have the stack of the calling function.
"""
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "sample"))
from recording import Recording, workdir
from sample_lib import Stacks, python_of
from tap import done, ok

NESTED = 12  # LOSS_NESTED
WORK = """
import ctypes, sys, time
copy = ctypes.CDLL(sys.argv[1]).cudaMemcpy
def copies(end):
    while time.monotonic() < end:
        for _ in range(100):
            copy(None, None, 1, 0)
sys.stdin.readline()
copies(time.monotonic() + 3)
"""


def main():
    library = shutil.copy(os.path.join(os.environ["B"], "tests/fakes/libcudart.so"), os.path.join(workdir(), "libcudart.so.12"))
    rec = Recording(["/usr/bin/python3", "-c", WORK, library], "cuda,sample", ["--cuda=stacks", "-F", "999"])
    ok(rec.status == 0, "recorded", rec.messages)
    stacks, samples = Stacks(rec.trace), rec.of("sample_cpu")
    names = [[f.name for f in python_of(stacks.stack(e.get("stack", 0)))] for e in samples]
    # outside its loop the program is in other functions, or in none
    inside = [n for n in names if "copies" in n]
    # a walk is most of a call's time, so that many samples interrupt one
    print(f"# {len(samples)} samples, {len(inside)} in the loop, {len(rec.of('cuda_copy'))} calls")
    ok(len(inside) > 100 and all(n[:2] == ["<module>", "copies"] for n in inside), "samples have the stack of the calling function", names[:3])
    lost = [e for e in rec.trace.events("meta_loss") if e["family"] == 0 and e["reason"] in (4, NESTED)]
    ok(not lost, "no stack is missing because of an interrupted walk", lost)
    done()


main()
