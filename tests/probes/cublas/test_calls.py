#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each function of a double of cuBLAS whose sizes sonde reads, for each type, with 32-bit and 64-bit sizes: calls and floating-point
operations are those that the program counts one by one.
test: timeout=120 gate"""
import os

from math_calls import BUILD, compare, double
from recording import Recording
from tap import done, ok

MATH_TF32, MATH_UNKNOWN = 3, 255


def recorded(function):
    return "axpy" not in function and function != "cublasSetMathMode"


def main():
    program = [os.path.join(BUILD, "tests/probes/cublas/blas_calls"), double("libcublas.so"), double("libcublasLt.so")]
    r = Recording(program, "cublas", ready="ready")
    compare(r, recorded, "double")
    modes = [e["math_mode"] for e in r.of("cublas_call")]
    # of the last three calls, the last one has another handle
    ok(set(modes[:-3]) == {MATH_UNKNOWN} and modes[-3:] == [MATH_TF32, MATH_TF32, MATH_UNKNOWN],
       "the mode of a handle is known from when it is set", modes)
    # as before Linux 6.13: a second link probes the returns
    os.environ["SONDE_TEST"] = "no-session"
    compare(Recording(program, "cublas", ready="ready"), recorded, "without session links")
    done()


main()
