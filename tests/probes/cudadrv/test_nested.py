#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: gate
"""Only driver calls within a recorded runtime call are left out; all others are recorded. Uses the doubles: their libcuda
logs each of its calls."""
import collections
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cuda"))
from common import BUILD, SONDE, Program, Recording, directory
from drv_lib import DRIVER, RUNTIME, SILENT, doubles, driver_truth
from tap import done, ok, skip

STEPS, KERNELS, THREADS = 20, 12, 3
# The runtime calls of one step of tests/fakes/cuda/fake_training.c
STEP = {"cudaMemcpyAsync": 1, "cudaMemsetAsync": 1, "cudaLaunchKernel": KERNELS, "cudaEventRecord": 1,
        "cudaStreamWaitEvent": 1, "cudaGraphLaunch": 1, "cudaStreamSynchronize": 1, "cudaMemcpy": 1}
ONCE = {"cudaMalloc": 1, "cudaStreamCreate": 2, "cudaGraphCreate": 1, "cudaGraphInstantiate": 1,
        "cudaEventSynchronize": 1, "cudaFree": 1}


def runtime_truth():
    """The runtime calls of one thread that a default recording contains"""
    want = collections.Counter(ONCE)
    for function, n in STEP.items():
        want[function] += n * STEPS
    want["cudaDeviceSynchronize"] = STEPS // 8 + 1
    return want


def record(tmp, program, families, *options):
    truth = os.path.join(tmp, "truth")
    if os.path.exists(truth):
        os.unlink(truth)
    p = Program(program, "-w", "-g", "-n", str(STEPS), "-k", str(KERNELS), "-t", str(THREADS), "-u", "1",
                FAKE_CUDA_TRUTH=truth)
    with Recording(os.path.join(tmp, "trace"), *options, families=families) as r:
        p.go()
        status = p.wait()
    ok(status == 0 and r.status == 0 and not r.losses(p.pid), f"-t {families} {' '.join(options)}: no losses", status,
       r.text, r.losses())
    seen = {}
    for family in (RUNTIME, DRIVER):
        seen[family] = {tid: collections.Counter((c["function"], c["ret"]) for c in calls if c["function"] not in SILENT)
                        for (_, tid), calls in r.calls([p.pid], [family]).items()}
    return r, truth, p.pid, seen


def without(threads, pid):
    """Removes the main thread, whose only calls were made before the recording."""
    return {t: c for t, c in threads.items() if t != pid and c}


def hits(r, function):
    """(hits, hits that were not recorded) of a function, in all processes"""
    last = [e for e in last_hits(r).values() if r.names[e["number"]] == function]
    return sum(e["hits"] for e in last), sum(e["skipped"] for e in last)


def last_hits(r):
    return {e["number"]: e for e in r.trace.events("meta_hits")}


def check_report(name, r):
    """Report cuda-api of both families: all functions have rows, and the total counts the time of nested calls once."""
    out = subprocess.run([SONDE, "report", r.path, "cuda-api", "--format", "json"], capture_output=True, text=True)
    rows = {row["name"]: row for row in json.loads(out.stdout)["tables"]["summary"]} if out.returncode == 0 else {}
    n = STEPS * KERNELS * THREADS
    ok({f: rows.get(f, {}).get("calls") for f in ("cudaLaunchKernel", "cuLaunchKernel")} ==
       {"cudaLaunchKernel": n, "cuLaunchKernel": n}, f"{name}, cuda-api: {n} launches by the runtime, {n} by the driver",
       out.stderr, rows)
    share = sum(row["time_percent"] for f, row in rows.items() if f.startswith("cuda"))
    ok(abs(share - 100) < 0.5, f"{name}, cuda-api: the total is the time of the runtime's calls", share, rows)


def check(version, folder):
    tmp = directory()
    program = os.path.join(folder, "fake_training")
    name = f"CUDA {version}"

    r, truth, pid, seen = record(tmp, program, "cuda,cudadrv")
    want = runtime_truth()
    ok(len(seen[RUNTIME]) == THREADS and
       all(collections.Counter({f: n for (f, _), n in c.items()}) == want for c in seen[RUNTIME].values()),
       f"{name}, both: {THREADS} threads with {sum(want.values())} calls of the runtime each", seen[RUNTIME], want)
    ok(not seen[DRIVER], f"{name}, both: no calls of the driver", seen[DRIVER])
    launches = sum(n for c in without(driver_truth(truth, version), pid).values()
                   for (f, _), n in c.items() if f == "cuLaunchKernel")
    n, left_out = hits(r, "cuLaunchKernel")
    ok(launches == STEPS * KERNELS * THREADS and n == left_out >= launches,
       f"{name}, both: the {launches} nested launches are counted as left out", launches, n, left_out)

    r, truth, pid, seen = record(tmp, program, "cudadrv")
    want = without(driver_truth(truth, version), pid)
    ok(seen[DRIVER] == want and len(want) == THREADS and not seen[RUNTIME],
       f"{name}, the driver alone: {sum((sum(c.values()) for c in want.values()))} calls as logged by libcuda",
       seen[DRIVER], want)

    r, truth, pid, seen = record(tmp, program, "cuda,cudadrv", "--cudadrv=nested")
    ok(seen[DRIVER] == without(driver_truth(truth, version), pid) and len(seen[RUNTIME]) == THREADS,
       f"{name}, --cudadrv=nested: both", seen[DRIVER])
    outer = r.calls([pid], [RUNTIME])
    outside = [c for thread, calls in r.calls([pid], [DRIVER]).items() for c in calls
               if not any(o["start"] <= c["start"] and c["time"] <= o["time"] for o in outer[thread])]
    ok(not outside, f"{name}, --cudadrv=nested: each within a call of the runtime", outside[:3])

    check_report(name, r)

    # The runtime's double linked in and stripped, as libcudart_static.a is into NCCL, so that no symbol shows its
    # functions
    bare = os.path.join(tmp, "static")
    subprocess.run(["cc", "-o", bare, *(os.path.join(folder, o) for o in ("fake_training.o", "libcudart.o")),
                    os.path.join(folder, "libcuda.so.1"), f"-Wl,-rpath,{folder}", "-lpthread", "-s"], check=True)
    r, truth, pid, seen = record(tmp, bare, "cuda,cudadrv")
    ok(seen[DRIVER] == without(driver_truth(truth, version), pid) and not seen[RUNTIME],
       f"{name}, a stripped runtime: the driver's calls are recorded instead", seen)
    shutil.rmtree(tmp)


def main():
    found = doubles()
    if not found:
        skip("nested calls", f"no doubles in {BUILD}: no headers of CUPTI")
    for version, folder in found:
        check(version, folder)
    done()


main()
