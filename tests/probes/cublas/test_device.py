#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A double of cuBLAS on a simulated GPU: report math attributes kernels to the call that launched them, on two threads, and states
their FLOP per second.
test: timeout=120 gate"""
import glob
import os
import subprocess

from math_calls import BUILD, ROOT, SONDE, report
from recording import SLOW, workdir
from tap import done, ok, skip_all

CALLS, KERNELS, KERNEL_NS = 20, 2, 100_000  # device_calls.c


def build(cudart):
	"""The library and the program"""
	source = os.path.join(ROOT, "tests/probes/cublas/device/device_calls.c")
	library, program = os.path.join(workdir(), "libcublas.so.12"), os.path.join(workdir(), "device_calls")
	paths = [f"-Wl,-rpath,{workdir()}:{os.path.dirname(cudart)}", cudart]
	subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-DLIBRARY", source, "-Wl,-soname,libcublas.so.12", "-o", library, *paths], check=True)
	subprocess.run(["cc", "-O1", "-pthread", source, library, "-o", program, *paths], check=True)
	return program


def main():
	found = sorted(glob.glob(os.path.join(BUILD, "tests/fakes/cuda/*/libcudart.so.*")))
	if not found:
		skip_all("NVIDIA's CUPTI headers could not be downloaded: scripts/cupti.sh prints why")
	path = os.path.join(workdir(), "trace.sonde")
	env = dict(os.environ, SONDE_CUPTI_WAIT="1000", FAKE_CUDA_TRUTH=os.path.join(workdir(), "truth"))
	r = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "cuda,cublas,gpu", "--", build(found[-1])], env=env,
			   stderr=subprocess.PIPE, text=True, timeout=60 * SLOW)
	rows = {row["sizes"]: row for row in report(path)["products"]}
	ok(r.returncode == 0 and set(rows) == {"NN 256 x 256 x 256", "NN 512 x 512 x 512"}, "two products", rows, r.stderr)
	for n, arithmetic in ((256, "FP32"), (512, "TF32")):
		row = rows[f"NN {n} x {n} x {n}"]
		flop, ns = 2 * n ** 3 * CALLS, KERNEL_NS * CALLS
		ok((row["calls"], row["kernels"], row["flop"], row["arithmetic"]) == (CALLS, CALLS * KERNELS, flop, arithmetic),
		   f"{n}: {CALLS} calls, {CALLS * KERNELS} kernels, {flop} FLOP", row)
		# the device's times are converted by a clock with an error
		ok(abs(row["gpu_ns"] - ns) <= 0.01 * ns and abs(row["flop_per_s"] * row["gpu_ns"] / 1e9 / flop - 1) < 1e-9,
		   f"{n}: the time of its kernels, and the FLOP per second that result", row, ns)
		ok(row["peak_percent"] is not None, f"{n}: a share of the device's peak", row)
	done()


main()
