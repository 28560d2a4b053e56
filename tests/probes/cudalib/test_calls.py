#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Doubles of libraries that family cudalib knows by their names: each call is recorded once, with its time and error. Functions that
are not calls of such a library are not recorded.
test: timeout=120 gate"""
import os
import subprocess
import sys

from math_calls import compare
from recording import Recording, workdir
from tap import done

# DT_SONAME: functions that are recorded, and others
LIBRARIES = {
	"libcufft.so.11": (["cufftPlan1d", "cufftExecC2C", "cufftDestroy"], ["helper"]),
	"libcusparse.so.12": (["cusparseCreate", "cusparseSpMV", "cusparseSpMM_bufferSize"], ["cusparseGetErrorName"]),
	"libcusparseLt.so.0": (["cusparseLtMatmul"], []),
	"libcusolver.so.11": (["cusolverDnCreate", "cusolverDnDgetrf", "cusolverSpDcsrlsvqr"], ["cublasCbatchTrsm"]),
	"libcusolverMg.so.11": (["cusolverMgGetrf"], []),
	"libcurand.so.10": (["curandCreateGenerator", "curandGenerateUniform"], []),
	"libnvjpeg.so.12": (["nvjpegDecode"], []),
	"libnppif.so.12": (["nppiFilterGauss_8u_C1R", "nppiFilterGauss_8u_C1R_Ctx"], []),
	"libnpps.so.12": (["nppsSum_32f"], []),
	"libnvinfer.so.10": (["createInferRuntime_INTERNAL", "createInferBuilder_INTERNAL"], ["getInferLibVersion"]),
	"libcublas.so.12": (["cublasSaxpy_v2", "cublasIsamax_v2", "cublasZgetrfBatched", "cublasDotEx", "cublasSgeam"],
			    ["cublasSgemm_v2", "cublasSetStream_v2", "cublasSaxpy"]),
}


def program():
	"""Calls each function twice, and those that are recorded again with an argument that makes them fail"""
	import ctypes
	libraries = {name: ctypes.CDLL(os.path.join(sys.argv[1], name)) for name in LIBRARIES}
	print("ready", flush=True)
	sys.stdin.readline()
	for name, (recorded, others) in LIBRARIES.items():
		for function in recorded + others:
			for argument in (0, 0, 7) if function in recorded else (0,):
				ret = libraries[name][function](argument)
				# NPP's warnings are positive; TensorRT's functions return an object
				failed = ret and not function.startswith(("npp", "create"))
				print(function, 1 if failed else 0, 0)


def build(folder):
	for name, functions in LIBRARIES.items():
		source = "".join(f"int {f}(int error) {{ return error; }}\n" for f in [*functions[0], *functions[1]])
		subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", f"-Wl,-soname,{name}", "-o", os.path.join(folder, name)],
			       input=source, text=True, check=True)


def main():
	build(workdir())
	r = Recording([sys.executable, os.path.abspath(__file__), workdir()], "cudalib", ready="ready")
	recorded = {f for functions in LIBRARIES.values() for f in functions[0]}
	compare(r, lambda f: f in recorded, "doubles")
	done()


if len(sys.argv) > 1:
	program()
else:
	main()
