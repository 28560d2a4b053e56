#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares the functions that the family's BPF programs name with those of the real NCCL (functions.txt and installed versions):
each exists, none is probed twice, and program nccl_other has exactly those that return no ncclResult_t.
test: parallel gate"""
import glob
import os
import re
import subprocess

from common import BUILD, NCCL
from tap import done, ok, skip

FUNCTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "functions.txt")


def sections(path):
    """Section names of an ELF file."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*\[ *\d+\] (\S+)", out, re.M)


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {f[2].split("@")[0] for f in map(str.split, out.splitlines()) if f[1] in "TW" and f[2].startswith("nccl")}


def declared(path):
    """{function: return type} of a header"""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^#[^\n]*", "", open(path).read(), flags=re.S | re.M)
    return {name: kind for kind, name in re.findall(r"\b(ncclResult_t|void|const char ?\*|int)\s+(nccl\w+)\(", text)}


def main():
    lists = [[f for f in re.split("[,;]", s.partition(":")[2]) if f] for s in sections(
        os.path.join(BUILD, "gen", "sonde.bpf.o")) if s.startswith("span/libnccl.so:")]
    named = [f for fs in lists for f in fs if "*" not in f]
    other = next(fs for fs in lists if "ncclGetErrorString" in fs)
    found = {f for line in open(FUNCTIONS) if not line.startswith("#") for f in line.split()}
    libraries = sorted(glob.glob(os.path.join(NCCL, "*", "lib", "libnccl.so.2")))
    for path in libraries:
        new = exported(path) - found
        ok(not new, f"functions.txt has all of {os.path.relpath(path, NCCL)}", sorted(new))
    ok(0 < len(lists) <= 10 and ["nccl*"] in lists, f"{len(lists)} programs, one of which is for all other functions", lists)
    ok(set(named) <= found, f"each of {len(named)} names exists in an NCCL", sorted(set(named) - found))
    ok(len(set(named)) == len(named), "none is named twice", sorted(f for f in named if named.count(f) > 1))
    headers = sorted(glob.glob(os.path.join(NCCL, "*", "include", "nccl.h")))
    for path in headers:
        wrong = {f: kind for f, kind in declared(path).items() if (kind == "ncclResult_t") == (f in other)}
        ok(len(declared(path)) > 30 and not wrong,
           f"the functions that return no ncclResult_t are known: {len(declared(path))} functions of {os.path.relpath(path, NCCL)}", wrong)
    if not headers:
        skip("headers", "NCCL is missing; scripts/nccl.sh downloads it")
    done()


main()
