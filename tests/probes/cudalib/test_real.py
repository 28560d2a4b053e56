#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The real libraries without a GPU: their calls fail and are recorded. Each function that they export is recorded by one family, or
is one of a list of others.
test: timeout=300"""
import fnmatch
import os
import subprocess
import sys

from math_calls import SONDE, compare, real
from recording import Recording
from tap import done, ok, skip_all

CALLS = {
	"libcufft": ["cufftPlan1d", "cufftDestroy"], "libcusparse": ["cusparseCreate"], "libcusolver": ["cusolverDnCreate"],
	"libcurand": ["curandCreateGenerator"], "libnvjpeg": ["nvjpegCreateSimple"], "libcublas": ["cublasSaxpy_v2"],
}
NAMES = ["libcufft", "libcusparse", "libcusolver", "libcusolverMg", "libcurand", "libnvjpeg", "libnppif", "libnpps", "libcublas"]
# internal functions, results that are no status, cuBLASXt, the API before CUDA 4, and settings
OTHERS = ["__*", "cusparseGet*", "cusparseGather", "cudaLibMg*", "cudlibMg*", "cublas*batch*", "cublasXt*", "cublas[SDCZI][a-z]*", "cublasGet*",
	  "cublasSet*", "cublasLogger*", "cublasAlloc", "cublasFree", "cublasInit", "cublasShutdown", "cublasXerbla", "cublasDestroy_v2",
	  "cublasUint8*", "pegasus*"]


def program():
	import ctypes
	libraries = {name: ctypes.CDLL(sys.argv[1 + i]) for i, name in enumerate(CALLS)}
	room = ctypes.create_string_buffer(64)
	print("ready", flush=True)
	sys.stdin.readline()
	for name, functions in CALLS.items():
		for function in functions:
			# a handle that is none, or where to store one
			first = None if name == "libcublas" else 12345 if "Destroy" in function else room
			ret = libraries[name][function](first, 100, 0, 0, 0, 0, 0)
			print(function, ret, 0)


def exported(path):
	lines = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
	return {line.split()[2].split("@")[0] for line in lines if line.split()[1] in "TWi"}


def probed(path):
	"""{function: families}"""
	lines = subprocess.run([SONDE, "list", "probes", "--resolve", path], stdout=subprocess.PIPE, text=True).stdout.splitlines()
	found = {}
	for family, function, *_ in (line.split() for line in lines if line.startswith(("cublas ", "cudalib "))):
		found.setdefault(function, set()).add(family)
	return found


def main():
	if not all(map(real, NAMES)):
		skip_all("NVIDIA's libraries are missing; scripts/math.sh downloads them")
	os.environ["LD_LIBRARY_PATH"] = os.path.dirname(real("libcufft"))
	r = Recording([sys.executable, os.path.abspath(__file__), *map(real, CALLS)], "cudalib", ready="ready")
	compare(r, lambda f: True, "real libraries")
	for name in NAMES:
		found, names = probed(real(name)), exported(real(name))
		missing = [n for n in sorted(names - found.keys()) if not any(fnmatch.fnmatchcase(n, o) for o in OTHERS)]
		twice = [n for n, families in found.items() if n in names and len(families) > 1]
		ok(found and not missing and not twice, f"{name}: each of {len(names)} functions belongs to one family", missing, twice)
	done()


if len(sys.argv) > 1:
	program()
else:
	main()
