#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The real cuBLAS and cuBLASLt without a GPU: each call fails, and is recorded with its sizes; the program is compiled with NVIDIA's
headers, so the parameters are right. Descriptors of the real cuBLASLt are as family cublas reads them.
test: timeout=120"""
import os

from math_calls import ROOT, compare, real, report, with_headers
from recording import Recording
from tap import done, ok, skip_all


def main():
    cublas, lt = real("libcublas"), real("libcublasLt")
    if not cublas or not lt:
        skip_all("NVIDIA's libraries are missing; scripts/math.sh downloads them")
    os.environ["LD_LIBRARY_PATH"] = os.path.dirname(cublas)
    program = with_headers(os.path.join(ROOT, "tests/probes/cublas/blas_calls.c"))
    r = Recording([program, cublas, lt, "null"], "cublas", ready="ready")
    compare(r, lambda f: "axpy" not in f and f != "cublasSetMathMode", "real library")
    # what blas_calls.c passes, by the order of its calls
    got = sorted((p["sizes"], p["types"]) for p in report(r.path)["products"] if p["name"] == "cublasLtMatmul")
    want = sorted([("NN 5 x 6 x 7", "R_16F"), ("TN 6 x 7 x 8", "R_16BF"), ("NT 7 x 8 x 9, batch 3", "R_32F as TF32"),
                   ("CC 4 x 5 x 6, batch 2", "C_32F as FP32")])
    ok(got == want, "sizes and types from descriptors of the real library", got)
    done()


main()
