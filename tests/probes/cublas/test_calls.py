#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each function of a double of cuBLAS whose sizes sonde reads, for each type, with 32-bit and 64-bit sizes: calls and floating-point
operations are those that the program counts one by one.
test: timeout=120 gate"""
import json
import os
import shutil
import subprocess

from recording import ROOT, Recording, counted, workdir
from tap import done, ok

BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "test", "sonde"))


def library(name, version):
    """The double by a file name by which sonde recognizes it"""
    path = os.path.join(workdir(), f"{name}.{version}")
    shutil.copy(os.path.join(BUILD, "tests/fakes", name), path)
    return path


def record(*options):
    program = os.path.join(BUILD, "tests/probes/cublas/blas_calls")
    return Recording([program, library("libcublas.so", 99), library("libcublasLt.so", 99)], "cublas", options)


def report(r):
    out = subprocess.run([SONDE, "report", r.path, "math", "--format", "json", "-n", "0"], stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)["tables"]


def truth(r):
    """{function: (calls, failures, FLOP)}, as the program counts"""
    found = {}
    for line in r.output:
        function, ret, flop = line.split()
        calls, errors, sum_ = found.get(function, (0, 0, 0))
        found[function] = (calls + 1, errors + (ret != "0"), sum_ + int(flop))
    return found


def main():
    r = record()
    want = {f: t for f, t in truth(r).items() if "axpy" not in f and f != "cublasSetMathMode"}
    rows = report(r)["products"]
    got = {}
    for row in rows:
        calls, errors, flop = got.get(row["name"], (0, 0, 0))
        got[row["name"]] = (calls + row["calls"], errors + row["errors"], flop + row["flop"])
    wrong = {f: (got.get(f), want.get(f)) for f in want.keys() | got.keys() if got.get(f) != want.get(f)}
    ok(r.status == 0 and want and not wrong, f"{len(want)} functions: calls, errors and FLOP are the program's", wrong, r.messages,
       counted(sum(c[0] for c in got.values()), sum(c[0] for c in want.values())))
    done()


main()
