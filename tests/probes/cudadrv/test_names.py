#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares the functions that the family's BPF programs name with NVIDIA's lists of the driver's functions (functions.txt and
installed headers): each name exists, none is probed twice, and --cudadrv=all adds all others.
test: parallel gate"""
import collections
import fnmatch
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cuda"))
from common import BUILD, ROOT
from elf_sections import sections
from tap import done, ok

# Launches of CUDA 3, and functions with other arguments than the named versions: only --cudadrv=all records them,
# without arguments
OLD = {"cuMemAlloc", "cuMemAllocHost", "cuMemAllocPitch", "cuMemcpy2D", "cuMemcpy2DUnaligned", "cuMemcpy2DAsync",
       "cuMemcpy3D", "cuMemcpy3DAsync", "cuArrayCreate", "cuArray3DCreate", "cuLaunch", "cuLaunchGrid", "cuLaunchGridAsync"}
# A default recording must have all of these, also those that later versions add
WORK = ["cuLaunch*", "cuMemcpy*", "cuMemset*", "cuMemAlloc*", "cuMemFree*", "cuGraphLaunch*", "cuGraphInstantiate*",
        "cu*Synchronize*", "cuStreamWaitEvent*", "cuStreamCreate*", "cuModuleLoad*", "cuLibraryLoad*"]
NO_WORK = {"cuMemcpy_v2", "cuStreamCreateForCaptureToCig"}  # CUPTI has ids for these, but no header declares them


def programs():
    """[(option, [function or glob])] of the BPF programs on libcuda"""
    for name in sections(os.path.join(BUILD, "gen", "sonde.bpf.o")):
        m = re.match(r"span(\+\w+)?/libcuda\.so:(.*)", name)
        if m:
            yield m[1] or "", [f for f in re.split("[,;]", m[2]) if f]


def known():
    with open(os.path.join(HERE, "functions.txt")) as f:
        found = {line.split()[0] for line in f if not line.startswith("#")}
    for path in glob.glob(os.path.join(ROOT, "build", "cupti", "*", "include", "cupti_driver_cbid.h")):
        found |= set(re.findall(r"CUPTI_DRIVER_TRACE_CBID_(cu[A-Z]\w*)", open(path).read()))
    return {n for n in found if not re.match("cu(Graphics)?(D3D|WGL)", n)}


def main():
    lists, names = list(programs()), known()
    named = [f for _, fs in lists for f in fs if "*" not in f]
    ok(0 < len(lists) <= 25, f"{len(lists)} programs, each of which needs a link per library", lists)
    ok(len(named) > 200 and set(named) <= names, f"each of the {len(named)} names is one of the driver's {len(names)} functions",
       sorted(set(named) - names))
    twice = [f for f, n in collections.Counter(named).items() if n > 1]
    ok(not twice, "no function is named by two programs", twice)
    rest = [f for option, fs in lists for f in fs if "*" in f and option == "+all"]
    ok(not [n for n in names if not any(fnmatch.fnmatchcase(n, g) for g in rest)], "with --cudadrv=all none is left out")
    always = {f for option, fs in lists for f in fs if not option}
    left = [n for n in sorted(names - always - OLD - NO_WORK) if any(fnmatch.fnmatchcase(n, w) for w in WORK)]
    ok(not left, "functions that submit work, allocate or wait are always traced", left)
    versions = [n for n in always for other in (n + "_ptsz", n + "_ptds") if other in names and other not in always]
    ok(not versions, "each function's variant for the per-thread default stream is traced", versions)
    done()


main()
