#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Findings on threads that run in calls of CUDA, or for them: planted in synthetic traces, each beside one in which it is just not true."""
import tempfile

from planted import code, first_of, merged_schema, off, off_stack, process, run, written
from tap import done, ok

TORCH = "/venv/lib/python3.11/site-packages/torch"
FUNCTIONS = {"cudaEventSynchronize": "cuda_sync", "cudaMemsetAsync": "cuda_set", "cudaMalloc": "cuda_alloc", "cudaFree": "cuda_free",
             "cudaLaunchKernel": "cuda_launch", "cudaMemcpyAsync": "cuda_copy", "cudaMemcpy": "cuda_copy"}
PROBES = [f'meta_probe time=@0 number={i} family=3 name="{name}" program="{event}" section="span/libcudart.so:{name}"'
          for i, (name, event) in enumerate(FUNCTIONS.items(), 1)]


def calls(name, seconds, every, first=0.5, last=7.5, tid=10, **fields):
    """Calls of a function, one each `every` seconds, that take so many seconds"""
    probe, more = list(FUNCTIONS).index(name) + 1, "".join(f" {k}={v}" for k, v in fields.items())
    return [f"{FUNCTIONS[name]} probe={probe} pid=10 tid={tid} start=@{first + i * every:.6f} time=@{first + i * every + seconds:.6f}{more}"
            for i in range(round((last - first) / every))]


def samples(stack, share, tid=10):
    """For this part of the time from 0.5 to 7.5 s"""
    return [f"sample_cpu pid=10 tid={tid} time=@{0.55 + i * 0.1:.2f} period=100000000 stack={stack}" for i in range(round(70 * share))]


def findings(folder, *lines, end=8):
    lines = [*process(10, "train"), *PROBES, *lines, f"meta_end time=@{end} reason=END_SIGNAL"]
    return written(folder, "planted", lines, merged_schema(folder), "proc,sched,gil,sample,cuda,gpu")[1]


def in_call(number, name, line=33):
    return code(number, f"step /app/train.py {line}", f"{name} /lib/libcudart.so")


def texts(found):
    return [f.get("text", "") for f in found]


def check_memory(folder):
    for seconds in (0.01, 0.001):
        allocates, allocating = in_call(1, "cudaMalloc")
        frees, freeing = in_call(2, "cudaFree", 40)
        found = findings(folder, *allocates, *frees, run(10, 10, 0.5, 7.5), *calls("cudaMalloc", seconds, 0.1),
                         *calls("cudaFree", seconds / 2, 0.1, 0.55), *samples(allocating, 0.5), *samples(freeing, 0.2))
        memory = first_of(found, kind="gpu-memory")
        ok(bool(memory) == (seconds > 0.005) and (not memory or (found[0] == memory and memory["text"].startswith(
            "train 10 spent 15% of 7.000 s allocating and freeing GPU memory in step (train.py:33): mostly 70 times in cudaMalloc, 10.000 ms each; "
            "70 times in cudaFree, 5.000 ms each, in step (train.py:40)."))), f"cudaMalloc of {seconds} s in each step", texts(found))


def check_launches(folder):
    """8,000 and 4,000 kernels a second, by a thread that does nothing else; and 8,000 by one that runs for half of the time"""
    for every, ran, is_bound in ((0.000125, 0.8, True), (0.00025, 0.8, False), (0.000125, 0.4, False)):
        lines, stack = in_call(1, "cudaLaunchKernel")
        found = findings(folder, *lines, run(10, 10, 0, ran), *calls("cudaLaunchKernel", 0.00001, every, 0, 0.8),
                         *(f"sample_cpu pid=10 tid=10 time=@0.{i} period=100000000 stack={stack}" for i in range(1, 8)), end=0.8)
        bound = first_of(found, kind="launches")
        ok(bool(bound) == is_bound and (not bound or (found[0] == bound and bound["times"] == 6400 and bound["text"].startswith(
            "train 10 launched 8,000 kernels a second in step (train.py:33), and hardly did anything else: each takes 125.000 us of CPU time, "
            "10.000 us of that in cudaLaunchKernel."))), f"a launch each {every} s, {ran} s on a CPU", texts(found))


def check_copies(folder):
    """Copies of 64 MiB that block for 30 ms, and those that return at once"""
    for name, seconds in (("cudaMemcpyAsync", 0.03), ("cudaMemcpy", 0.03), ("cudaMemcpyAsync", 0.0005)):
        lines, stack = in_call(1, name)
        found = findings(folder, *lines, run(10, 10, 0.5, 7.5), *calls(name, seconds, 0.05, bytes=64 << 20, kind="CUDA_COPY_HTOD"), *samples(stack, 1))
        copies, is_async = first_of(found, kind="gpu-copies"), ", from or to pageable memory" if "Async" in name else ". "
        ok(bool(copies) == (seconds > 0.01) and (not copies or (found[0] == copies and not first_of(found, kind="compute") and copies["text"].startswith(
            f"train 10 waited 52% of 8.000 s for copies from or to a GPU in step (train.py:33): 140 times in {name}, 30.000 ms each; 8.75 GiB, 2.2 GB/s"
            f"{is_async}"))), f"{name} of 64 MiB in {seconds} s", texts(found))


def check_pool(folder):
    """Two threads of OpenMP spin until there is work, beside one that computes for less time; or they compute"""
    for inner, threads in (("gomp_barrier_wait_end /lib/libgomp.so.1", 1), ("work /lib/libblas.so", 3)):
        loads, loading = code(1, "load /app/train.py 20")
        spins, spinning = code(2, "gomp_thread_start /lib/libgomp.so.1", inner)
        lines = [*loads, *spins, run(10, 10, 0.5, 4), *samples(loading, 0.5)]
        for tid in (11, 12):
            lines += [run(10, tid, 0.5, 7.5), *samples(spinning, 1, tid)]
        compute = first_of(findings(folder, *lines), kind="compute")
        text = compute.get("text", "")
        ok(compute.get("threads") == threads and (threads > 1 or ("in load (train.py:20); 100% of its CPU time" in text and "gomp" not in text)),
           f"threads of a pool in {inner.split()[0]}: {threads} compute", compute)


def check_backward(folder):
    """A thread waits in backward() for one that launches kernels; or for one that computes"""
    for every in (0.0001, 0.001):
        waits, waiting = code(1, "step /app/train.py 26", f"_engine_run_backward {TORCH}/autograd/graph.py 869")
        computes, computing = code(2, "evaluate /lib/libtorch_cpu.so")
        lines = [*waits, *computes]
        for i in range(30):
            at = 0.5 + i * 0.02
            lines += [off(10, 10, at, at + 0.015, at + 0.015, "SCHED_SLEEP", 10).replace("waker_tid=10", "waker_tid=12"), run(10, 10, at + 0.015, at + 0.02),
                      off_stack(10, 10, at, at + 0.015, waiting, "SYS_futex", "SAMPLE_LOCK"), run(10, 12, at, at + 0.02),
                      f"sample_cpu pid=10 tid=12 time=@{at + 0.01:.6f} period=20000000 stack={computing}"]
        found = findings(folder, *lines, *calls("cudaLaunchKernel", 0.00001, every, 0.5, 1.1, 12), end=1.2)
        did = "launched 6,000 kernels, 100.000 us of CPU time each" if every < 0.0002 else "computed in evaluate (libtorch_cpu.so)"
        backward = first_of(found, kind="backward")
        ok("for its backward pass in step (train.py:26): 30 times in futex, 15.000 ms each; in the end it waited for thread 12, which " + did in backward.get(
            "text", ""), f"a wait for the backward pass, which launches a kernel each {every} s", texts(found))


with tempfile.TemporaryDirectory() as there:
    for check in (check_memory, check_launches, check_copies, check_pool, check_backward):
        check(there)
done()
