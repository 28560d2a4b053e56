# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of the GPU model and its reports: compares the reports' rows with the work that the doubles of CUDA logged."""
import collections
import json
import os
import subprocess
import tempfile

from shim_lib import ROOT
from tap import ok

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "test", "sonde"))
NAMES = {"_Z4gemmILi128EEvPfS0_S0_i": "void gemm<128>(float*, float*, float*, int)", "_Z7softmaxPfi": "softmax(float*, int)",
         "_Z10layer_normPfS_i": "layer_norm(float*, float*, int)", "_Z4adamPfS_S_f": "adam(float*, float*, float*, float)"}
COPIES = {1: "[CUDA memcpy Host-to-Device]", 2: "[CUDA memcpy Device-to-Host]", 8: "[CUDA memcpy Device-to-Device]",
          10: "[CUDA memcpy Peer-to-Peer]"}
APIS = {"kernel": {"cudaLaunchKernel"}, "copy": {"cudaMemcpyAsync", "cudaMemcpy", "cudaMemcpyPeerAsync"},
        "set": {"cudaMemsetAsync"}, "graph": {"cudaGraphLaunch"}}
tmp = tempfile.mkdtemp(prefix="sonde-model-")


def report(path, name, *options):
    r = subprocess.run([SONDE, "report", path, name, "--format", "json", *options], capture_output=True, text=True, timeout=200)
    return json.loads(r.stdout) if r.returncode == 0 else ok(False, f"report {name}", r.stderr)


def rows_of(path):
    """(rows of cuda-trace with the trace's times, the report's notes)"""
    r = report(path, "cuda-trace")
    rows = r["tables"]["trace"]
    for row in rows:
        for field in ("start_ns", "launch_start_ns"):
            if row[field] is not None:
                row[field] += r["trace"]["start_ns"]
    return rows, r.get("notes", [])


def kind_of(row):
    if row["name"] == "[CUDA graph]":
        return "graph"
    return "copy" if "memcpy" in row["name"] else "set" if "memset" in row["name"] else "kernel"


def key_of(kind, e):
    """The key of an event of the truth, in the form of identity() for a row"""
    name = NAMES[e["name"]] if kind == "kernel" else COPIES[e["kind"]] if kind == "copy" else \
        "[CUDA memset]" if kind == "set" else "[CUDA graph]"
    return (name, e["correlation"], e["device"], e["context"], e["stream"], e["node"] if kind in ("kernel", "set") else 0,
            e["bytes"] if kind in ("copy", "set") else None, e["grid"] if kind == "kernel" else None)


def identity(kind, row):
    grid = f"{row['grid_x']},{row['grid_y']},{row['grid_z']}" if kind == "kernel" else None
    return (row["name"], row["correlation"], int(row["device"].rsplit("(", 1)[1][:-1]), row["context"], row["stream"],
            row["graph_node"] or 0, row["bytes"], grid)


def compare(label, run, kinds=("kernel", "copy", "set"), probed=True, thread=None, pid_of=lambda ns: ns):
    rows, by_key = collections.defaultdict(list), collections.defaultdict(list)
    for row in run.rows:
        rows[kind_of(row)].append(row)
    calls = {(e["pid"], e["correlation"]): e for e in run.truth["call"]}
    wrong, times = [], 0
    for kind in kinds:
        want = [e for e in run.truth[kind] if e["traced"]]
        a = collections.Counter((pid_of(e["pid"]), *key_of(kind, e)) for e in want)
        b = collections.Counter((r["pid"], *identity(kind, r)) for r in rows[kind])
        ok(a == b and a, f"{label}: each of {len(want)} {kind} events exactly once",
           f"missing {list((a - b).items())[:5]}", f"too many {list((b - a).items())[:5]}")
        for e in sorted(want, key=lambda e: e["start"]):
            by_key[(pid_of(e["pid"]), *key_of(kind, e))].append(e)
        for r in rows[kind]:
            twins = by_key.get((r["pid"], *identity(kind, r)))
            if not twins:
                continue
            e = twins.pop(0)
            c = calls.get((e["pid"], e["correlation"]))
            times = max(times, abs(r["start_ns"] - e["start"]), abs(r["start_ns"] + r["duration_ns"] - e["end"]))
            tid = thread(r["pid"], c["tid"]) if thread else c["tid"]
            api = APIS["graph"] if e["graph"] else APIS[kind]
            if r["tid"] != tid or (probed and r["api"] not in api) or r["only_by_calls"]:
                wrong.append((kind, r, e, c))
            elif r["launch_start_ns"] > c["start"] + run.error or r["launch_start_ns"] + r["launch_ns"] < c["end"] - run.error:
                wrong.append(("times", r, e, c))
            elif r["queued_ns"] != max(0, r["start_ns"] - r["launch_start_ns"] - r["launch_ns"]):
                wrong.append(("queued", r, e, c))
    ok(not wrong, f"{label}: each is joined to its call and thread", len(wrong), wrong[:2])
    ok(times <= run.error, f"{label}: times agree within {run.error} ns, the clock's error", f"off by {times}")
    return rows


def sums(label, run):
    """Compares the reports' sums with the truth's."""
    kernels = collections.defaultdict(list)
    for e in run.truth["kernel"]:
        if e["traced"]:
            kernels[NAMES[e["name"]]].append(e["end"] - e["start"])
    got = {r["name"]: r for r in report(run.path, "cuda-kern")["tables"]["summary"]}
    n = sum(len(v) for v in kernels.values())
    ok({k: v["instances"] for k, v in got.items()} == {k: len(v) for k, v in kernels.items()},
       f"{label}: cuda-kern counts all {n} kernels", {k: v["instances"] for k, v in got.items()})
    ok(all(abs(got[k]["total_ns"] - sum(v)) <= 2 * len(v) * run.error and abs(got[k]["max_ns"] - max(v)) <= 2 * run.error
           for k, v in kernels.items() if k in got) and got, f"{label}: cuda-kern adds up their time",
       {k: (got[k]["total_ns"], sum(v)) for k, v in kernels.items() if k in got})
    launched = report(run.path, "cuda-kern-launch")["tables"]["summary"]
    by_thread = collections.Counter()
    calls = {(e["pid"], e["correlation"]): e["tid"] for e in run.truth["call"]}
    for e in run.truth["kernel"]:
        if e["traced"]:
            by_thread[calls[e["pid"], e["correlation"]], e["device"]] += 1
    seen = collections.Counter()
    for r in launched:
        seen[r["tid"], r["device"]] += r["count"]
    ok(seen == by_thread, f"{label}: cuda-kern-launch counts them by thread and device", seen, by_thread)
    bytes_of, count_of = collections.Counter(), collections.Counter()
    for kind in ("copy", "set"):
        for e in run.truth[kind]:
            if e["traced"]:
                bytes_of[key_of(kind, e)[0]] += e["bytes"]
                count_of[key_of(kind, e)[0]] += 1
    size = {r["operation"]: (r["total_bytes"], r["count"]) for r in report(run.path, "cuda-mem-size")["tables"]["summary"]}
    time = {r["operation"]: (r["bytes"], r["count"]) for r in report(run.path, "cuda-mem-time")["tables"]["summary"]}
    want = {k: (bytes_of[k], count_of[k]) for k in count_of}
    ok(size == want and time == want, f"{label}: cuda-mem-size and cuda-mem-time have the bytes", size, time, want)
