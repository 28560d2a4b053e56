# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of family cudadrv, in addition to ../cuda/common.py."""
import collections
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cuda"))
from common import BUILD, ROOT

BUILT = os.path.join(BUILD, "tests", "probes", "cudadrv")
DOUBLES = os.path.join(BUILD, "tests", "fakes", "cuda")
RUNTIME, DRIVER = 3, 6  # families
# Calls that libcuda's double does not log, as they do nothing on a device
SILENT = {"cuStreamCreate", "cuGraphCreate", "cuGraphInstantiateWithFlags"}


def idle_driver(tmp):
    """Copies the libcuda that does nothing to a file name by which sonde recognizes it."""
    path = os.path.join(tmp, "libcuda.so.1")
    shutil.copy(os.path.join(BUILD, "tests", "fakes", "libcuda.so"), path)
    return path


def doubles():
    """[(version, directory)] of the doubles that could be built."""
    found = [(v, os.path.join(DOUBLES, v)) for v in ("12", "13")]
    return [(v, d) for v, d in found if os.path.exists(os.path.join(d, "fake_training"))]


def callback_names(version):
    """{callback id: function} from NVIDIA's header"""
    path = os.path.join(ROOT, "build", "cupti", version, "include", "cupti_driver_cbid.h")
    return {int(n): f for f, n in re.findall(r"CUPTI_DRIVER_TRACE_CBID_(\w+)\s*=\s*(\d+)", open(path).read())}


def driver_truth(path, version):
    """{tid: Counter of (function, result)} that libcuda's double logged"""
    names, threads = callback_names(version), collections.defaultdict(collections.Counter)
    for line in open(path):
        if line.startswith("call "):
            f = dict(w.split("=", 1) for w in line.split()[1:] if "=" in w)
            threads[int(f["tid"])][names[int(f["kind"])], int(f["result"])] += 1
    return threads
