#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Convolutions and products of a double of cuDNN, by the older functions and by graphs: sizes come from descriptors, some of which
are set again or destroyed; calls and floating-point operations are those that the program counts one by one.
test: timeout=120 gate"""
import os

from math_calls import BUILD, compare, double, report
from recording import Recording
from tap import done, ok


def main():
    program = [os.path.join(BUILD, "tests/probes/cudnn/dnn_calls"), double("libcudnn.so")]
    r = Recording(program, "cudnn", ready="ready")
    compare(r, lambda f: True, "double")
    rows = {(p["name"], p["sizes"]): p["types"] for p in report(r.path)["products"]}
    # m: points of the result; n: its channels; k: elements of a filter
    ok(rows.get(("cudnnConvolutionForward", "conv 96 x 4 x 18")) == "R_32F" and
       rows.get(("cudnnConvolutionForward", "conv 16 x 8 x 27")) == "R_16F", "sizes of older functions", rows)
    ok(rows.get(("cudnnBackendExecute", "5 x 4 x 7, batch 6")) == "R_16F" and
       rows.get(("cudnnBackendExecute", "conv 96 x 4 x 18, and 1 more")) == "R_16BF", "sizes of graphs", rows)
    done()


main()
