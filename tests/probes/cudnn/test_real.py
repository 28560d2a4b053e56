#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The real cuDNN without a GPU: each call fails, and is recorded with the sizes of its descriptors; the program is compiled with
NVIDIA's headers, so the parameters are right.
test: timeout=120"""
import os

from math_calls import ROOT, compare, real, report, with_headers
from recording import Recording
from tap import done, ok, skip_all


def main():
    cudnn = real("libcudnn")
    if not cudnn:
        skip_all("NVIDIA's libraries are missing; scripts/math.sh downloads them")
    os.environ["LD_LIBRARY_PATH"] = os.path.dirname(cudnn)
    program = with_headers(os.path.join(ROOT, "tests/probes/cudnn/dnn_calls.c"))
    r = Recording([program, cudnn, "null"], "cudnn", ready="ready")
    compare(r, lambda f: True, "real library")
    calls = {(p["name"], p["sizes"]): p["calls"] for p in report(r.path)["products"]}
    want = {("cudnnConvolutionForward", "conv 96 x 4 x 18"): 2, ("cudnnConvolutionForward", "conv 16 x 8 x 27"): 1,
            ("cudnnConvolutionBiasActivationForward", "conv 96 x 4 x 18"): 1, ("cudnnConvolutionBackwardData", "conv 96 x 4 x 18"): 1,
            ("cudnnConvolutionBackwardFilter", "conv 96 x 4 x 18"): 1, ("cudnnBackendExecute", "conv 96 x 4 x 18"): 3,
            ("cudnnBackendExecute", "5 x 4 x 7, batch 6"): 1, ("cudnnBackendExecute", "conv 96 x 4 x 18, and 1 more"): 1}
    ok(calls == want, "sizes of the real library's descriptors", calls)
    done()


main()
