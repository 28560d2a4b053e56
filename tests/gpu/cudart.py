# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part `cudart`: does a libcudart that is linked in reach libcuda's exports? Only then uprobes there see such programs.

reach.c answers it in the process itself, by breakpoints on all exports: it needs neither eBPF nor ptrace.
"""
import glob
import json
import os
import re

from facts import with_cuda
from lib import BUILD, ROOT, Skip

from build import compiler

# What of the driver's is expected behind each call; any of them
EXPECTED = {
    "cudaMalloc": ("cuMemAlloc",),
    "cudaMemcpy HtoD": ("cuMemcpy",),
    "cudaMemcpy DtoH": ("cuMemcpy",),
    "cudaMemcpyAsync HtoD": ("cuMemcpy",),
    "cudaMemcpyAsync DtoH": ("cuMemcpy",),
    "cudaMemsetAsync": ("cuMemset",),
    "cudaLaunchKernel": ("cuLaunchKernel",),
    "cudaEventRecord": ("cuEventRecord",),
    "cudaStreamSynchronize": ("cuStreamSynchronize",),
    "cudaDeviceSynchronize": ("cuCtxSynchronize",),
}


def static_libraries(run):
    """libcudart_static.a of a version that the driver can serve, newest first."""
    m = run.result["machine"]
    places = glob.glob("/usr/local/cuda*/lib64") + glob.glob("/usr/local/cuda*/targets/*/lib") + ["/usr/lib/x86_64-linux-gnu"]
    places += glob.glob(os.path.join(BUILD, "cuda", "1?", "lib"))
    if m["torch"].get("at"):
        places += glob.glob(os.path.dirname(m["torch"]["at"]) + "/nvidia/*/lib")
    found = {}
    for place in places:
        path = os.path.join(place, "libcudart_static.a")
        if not os.path.exists(path):
            continue
        beside = " ".join(glob.glob(place + "/libcudart.so.1*"))
        version = re.search(r"libcudart\.so\.(1\d)", beside) or re.search(r"cuda[-/]?(1\d)", os.path.realpath(path))
        major = int(version[1]) if version else 0
        if major <= m["cuda_major"]:
            found.setdefault(os.path.realpath(path), major)
    return sorted(found.items(), key=lambda f: -f[1])


def link(run, library):
    program, rest = run.file("reach"), ["-ldl", "-lpthread", "-lrt", "-lm"]
    link_args = ["-Wl,-u,cudaLibraryLoadData,-u,cudaLibraryGetKernel"]
    if run.doubles:
        link_args = ["-Wl,-rpath-link," + os.path.dirname(library)]
    done = run.command([compiler(), "-std=gnu11", "-O1", "tests/gpu/reach.c", "-o", program, *link_args, library, *rest], 30)
    if done.status:
        raise Skip(f"tests/gpu/reach.c can't be linked with {library}: {done.why()}")
    return program


def answer(run, label, done):
    lines = []
    for line in done.out.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            pass
    asked = {e["asked"]: e["is"] for e in lines if "asked" in e}
    reached = {}
    for e in lines:
        if "call" in e:
            reached.setdefault(e["call"], []).append(e["reached"])
    yes = sorted(call for call, lists in reached.items() if call in EXPECTED and
                 all(any(name.startswith(EXPECTED[call]) for name in names) for names in lists))
    no = sorted(call for call in reached if call in EXPECTED and call not in yes)
    run.ok(done.status == 0 and len(yes + no) >= 8, f"{label}: the program runs to its end", done.why(), done.out[-600:])
    words = "yes" if yes and not no else "no" if no and not yes else "in part" if yes else "not known"
    run.say(f"{label}: reaches libcuda's exports", words)
    run.say(f"{label}: calls that do", yes)
    run.say(f"{label}: calls that do not", {call: reached[call][-1] for call in no})
    run.say(f"{label}: reached by call", {call: lists[-1] for call, lists in reached.items()})
    run.say(f"{label}: what cuGetProcAddress answers", asked)
    for e in lines:
        if "note" in e:
            run.say(f"{label}: note", e["note"])
    return words


def run(run):
    m = run.result["machine"]
    if not compiler():
        raise Skip("there is no compiler to link a program with")
    if not m["cuda_major"]:
        raise Skip("there is no libcuda.so.1")
    if run.doubles:
        label = "the doubles' libcudart"
        done = run.command([link(run, m["cudart"])], 20, env=with_cuda(run))
        run.ok(answer(run, label, done) == "yes", f"{label} calls libcuda by its exports, and that is seen")
        return
    found = static_libraries(run)
    if not found:
        raise Skip("there is no libcudart_static.a, neither in a toolkit nor in a wheel; scripts/cuda.sh gets one")
    for path, major in found[:2]:
        label = f"libcudart_static.a of CUDA {major or '?'}"
        run.say(f"{label}: is", os.path.relpath(path, ROOT) if path.startswith(ROOT) else path)
        answer(run, label, run.command([link(run, path)], 25, env=with_cuda(run)))
