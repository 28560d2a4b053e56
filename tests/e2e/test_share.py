#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The probe sites in real libraries, from `sonde list probes --resolve`: every function with a cheap site gets it. The
instructions at each site are compared with objdump's. Prints the shares."""
# test: timeout=600 parallel
import glob
import json
import os
import re
import shutil
import subprocess

ROOT = os.environ.get("ROOT", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from tap import done, ok, skip

SONDE = os.environ.get("SONDE", f"{ROOT}/build/test/sonde")
CUDA = os.environ.get("CUDA", f"{ROOT}/build/cuda")
# instructions that the kernel handles cheaply, as objdump prints them
EMULATED = re.compile(r"(push +%r\w+|nop|call +[0-9a-f]+ .*|jmp +[0-9a-f]+ .*|j[a-z]+ +[0-9a-f]+ .*)$")


def resolve(path, *options):
    out = subprocess.run([SONDE, "list", "probes", "--resolve", path, *options, "--format", "json"],
                         capture_output=True, text=True)
    if out.returncode:
        return None, out.stderr
    tables = json.loads(out.stdout)["tables"]
    return tables["places"], tables["totals"]


def instructions(path):
    """{address: text} of every instruction, by objdump"""
    if not shutil.which("objdump"):
        return None
    found = {}
    out = subprocess.Popen(["objdump", "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, text=True)
    for line in out.stdout:
        m = re.match(r" *([0-9a-f]+):\s+(.*?)(?:\s+#.*)?$", line)
        if m:
            found[int(m[1], 16)] = m[2].strip().replace("\t", " ")
    return found


def check(name, path, *options, exits=False, objdump=True):
    places, totals = resolve(path, *options)
    if not ok(places, f"{name}: is resolved", totals if places is None else ""):
        return
    for t in totals:
        print(f"# {name}: {t['functions']} functions, {t['cheap_entries']} entries cheap"
              f" ({t['cheap_entries_percent']:.1f}%)" +
              (f"; exits of {t['placed_exits']} found, all cheap in {t['cheap_exits']}"
               f" ({t['cheap_exits_percent']:.1f}%); {t['places']} places" if t["placed"] else ""))
    rest = {}
    for p in places:
        if p["cost"] != "emulated":
            rest.setdefault(f"{p['place']}: {p['why']}", set()).add(p["symbol"])
    for why, symbols in sorted(rest.items()):
        print(f"#   {len(symbols):5} {why}: {', '.join(sorted(symbols)[:4])}{', ...' if len(symbols) > 4 else ''}")
    ok(all(p["why"] for p in places if p["cost"] != "emulated" and p["place"] != "unwind"),
       f"{name}: an expensive site has a reason")
    if exits:
        ok(all(t["placed_exits"] == t["placed"] for t in totals), f"{name}: every function's ends are found")
    code = instructions(path) if objdump else None
    if code:
        wrong = [p for p in places if p["cost"] != "none" and
                 bool(EMULATED.match(code.get(p["address"], "?"))) != (p["cost"] == "emulated")]
        ok(not wrong, f"{name}: {len(places)} sites have the instructions that objdump prints",
           [(p["symbol"], hex(p["address"]), p["cost"], code.get(p["address"])) for p in wrong[:5]] if wrong else "")


def main():
    for version in ("12", "13"):
        path = f"{CUDA}/{version}/lib/libcudart.so.{version}"
        if not os.path.exists(path):
            skip(f"libcudart {version}", "it is missing; scripts/cuda.sh downloads it")
            continue
        check(f"libcudart {version}", path)
        check(f"libcudart {version} as placed calls", path, "--placed", "cuda*", exits=True, objdump=False)
    nccl = sorted(glob.glob(f"{ROOT}/build/nccl/*/lib/libnccl.so.2"))
    for path in nccl:
        check(f"libnccl {path.split('/')[-3]}", path, "--placed", "nccl[A-Z]*")
    if not nccl:
        skip("libnccl", "none in build/nccl")
    pythons = sorted(set(map(os.path.realpath, glob.glob("/root/.pyenv/versions/3.*/lib/libpython3.*.so.1.0") +
                             glob.glob("/usr/lib/x86_64-linux-gnu/libpython3.*.so.1.0") +
                             glob.glob("/usr/bin/python3.*"))))
    pythons = [p for p in pythons if re.search(r"python3\.(8|9|1[0-9])(\.so\.1\.0)?$", p)]
    for path in pythons:
        check(path, path, objdump=False)
    if not pythons:
        skip("python", "no libpython or python 3.8 to 3.15 is installed")
    torch = os.environ.get("SONDE_TORCH") or next(iter(glob.glob(
        "/usr/*/lib/python3*/*-packages/torch/lib/libtorch_cpu.so") + glob.glob(
        "/root/.pyenv/versions/*/lib/python3*/site-packages/torch/lib/libtorch_cpu.so")), None)
    if torch and os.path.exists(torch):
        check("libtorch's operators", torch, "--placed", "_ZN2at4_ops*4callE*", exits=True, objdump=False)
    else:
        skip("libtorch's operators", "no PyTorch is installed; SONDE_TORCH names a libtorch_cpu.so")
    done()


main()
