# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of families cublas, cudnn and cudalib: doubles and real libraries, and what report math shows of a recording."""
import glob
import json
import os
import shutil
import subprocess

from recording import ROOT, counted, workdir
from tap import ok

BUILD = os.environ.get("B", os.path.join(ROOT, "build"))
SONDE = os.environ.get("SONDE", os.path.join(BUILD, "test", "sonde"))
REAL = os.path.join(BUILD, "math", "12")  # what scripts/math.sh downloaded
HEADERS = os.path.join(BUILD, "cuda", "12", "include")


def double(name, version=99):
	"""The path of a double, with a file name by which sonde recognizes it"""
	path = os.path.join(workdir(), f"{name}.{version}")
	shutil.copy(os.path.join(BUILD, "tests/fakes", name), path)
	return path


def real(name):
	"""The path of a real library; None: scripts/math.sh did not download it"""
	found = glob.glob(os.path.join(REAL, "lib", name + ".so.*"))
	return found[0] if found else None


def with_headers(source):
	"""The path of a test's program, compiled with NVIDIA's headers in place of its own declarations"""
	path = os.path.join(workdir(), os.path.basename(source)[:-2] + "-vendor")
	# cuda_fp16.h includes this file of another wheel, and uses nothing of it in C
	os.makedirs(os.path.join(workdir(), "nv"), exist_ok=True)
	open(os.path.join(workdir(), "nv", "target"), "w").close()
	subprocess.run(["cc", "-DVENDOR", "-O1", "-Wall", "-Werror", "-I", os.path.join(REAL, "include"), "-I", HEADERS,
			"-I", workdir(), source, "-o", path, "-ldl"], check=True)
	return path


def report(path):
	"""The tables of report math"""
	out = subprocess.run([SONDE, "report", path, "math", "--format", "json", "-n", "0"], stdout=subprocess.PIPE, check=True)
	return json.loads(out.stdout)["tables"]


def truth(recording, recorded):
	"""{function: (calls, failures, FLOP)}, as the program printed them; recorded(function): does the family record it?"""
	found = {}
	for line in recording.output:
		function, ret, flop = line.split()
		calls, errors, total = found.get(function, (0, 0, 0))
		if recorded(function):
			found[function] = (calls + 1, errors + (ret != "0"), total + int(flop))
	return found


def shown(recording):
	"""The same as report math shows it"""
	found, tables = {}, report(recording.path)
	for row in tables["functions"]:
		found[row["name"]] = (row["calls"] + row["untimed"], row["errors"], row["flop"] or 0)
	flop = {}
	for row in tables["products"]:
		flop[row["name"]] = flop.get(row["name"], 0) + row["flop"]
	wrong = {f: (flop[f], found[f][2]) for f in flop if flop[f] != found[f][2]}
	ok(not wrong, "both tables have the same FLOP", wrong)
	return found


def compare(recording, recorded, name):
	want, got = truth(recording, recorded), shown(recording)
	wrong = {f: ("shown", got.get(f), "true", want.get(f)) for f in sorted(want.keys() | got.keys()) if got.get(f) != want.get(f)}
	ok(recording.status == 0 and want and not wrong, f"{name}: calls, errors and FLOP of {len(want)} functions", wrong,
	   recording.messages, counted(sum(c[0] for c in got.values()), sum(c[0] for c in want.values())))
