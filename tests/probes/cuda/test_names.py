#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares the functions that the family's BPF programs name with those of the real libcudart (functions.txt and installed
versions): each name exists, none is probed twice, and with --cuda=all none is left out.
test: parallel gate"""
import fnmatch
import glob
import os
import re
import subprocess

from common import BUILD, CUDA
from elf_sections import sections
from tap import done, ok

# Functions that return no cudaError_t, and functions that the program does not call itself
NOT_TRACED = ["cudaGetErrorName", "cudaGetErrorString", "cudaCreateChannelDesc", "cudaGetExportTable",
              "cudaEventCreateFromEGLSync"]


def programs():
    """[[function or glob]] of the BPF programs on libcudart"""
    for name in sections(os.path.join(BUILD, "gen", "sonde.bpf.o")):
        m = re.match(r"span(\+\w+)?/libcudart\.so:(.*)", name)
        if m:
            yield [f for f in re.split("[,;]", m[2]) if f]


def main():
    lists = list(programs())
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions.txt")) as f:
        found = {line.split()[0]: line for line in f if not line.startswith("#")}
    for path in glob.glob(os.path.join(CUDA, "*", "lib", "libcudart.so.*")):
        out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            if line.split()[1] in "TtW":
                found.setdefault(line.split()[2].split("@")[0], path)
    ok(0 < len(lists) <= 25, f"{len(lists)} programs, each of which needs a link per library", lists)
    missing = [f for fs in lists for f in fs if not any(fnmatch.fnmatchcase(n, f) for n in found)]
    ok(not missing, "each name exists in a libcudart", missing)
    twice = [n for n in found if sum(any(fnmatch.fnmatchcase(n, f) for f in fs) for fs in lists) > 1]
    ok(not twice, "no function is probed by two programs", twice)
    left = [n for n in found if n.startswith("cuda") and n not in NOT_TRACED and
            not any(fnmatch.fnmatchcase(n, f) for fs in lists for f in fs)]
    ok(not left, f"with --cuda=all, each of {sum(n.startswith('cuda') for n in found)} functions is traced", left)
    wrong = [n for n in NOT_TRACED if any(fnmatch.fnmatchcase(n, f) for fs in lists for f in fs)]
    ok(not wrong, "functions that return no error code are not probed", wrong)
    done()


main()
