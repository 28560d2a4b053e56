#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two ranks of made-up training on the doubles of CUDA, exported in Kineto's form. HolisticTraceAnalysis and TensorBoard's plugin read the
files without an exception, and their figures are those of sonde's own reports; each launch is joined to the operator around it and to its work.
test: timeout=400"""
import collections
import glob
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "torch"))
import torch_env
from file_lock import locked
from pip_packages import install
from recording import Recording, workdir
from shim_lib import DOUBLES, SHIM, versions
from tap import done, ok, skip

B, SONDE = os.environ["B"], os.environ["SONDE"]
PACKAGES = ("HolisticTraceAnalysis==0.5.0", "torch-tb-profiler==0.4.3", "pandas<3", "setuptools<81")
STEPS = 8
COPY, GEMM, REDUCE = "Memcpy HtoD (Pageable -> Device)", "void gemm<128>(float*, float*, float*, int)", "ncclKernel_AllReduce_RING_LL_Sum_float"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def record():
    version = versions()[-1]
    os.environ.update(CUDA_INJECTION64_PATH=SHIM, FAKE_CUDA="devices=2")
    work = [torch_env.python(), os.path.join(HERE, "kineto_work.py"), os.path.join(DOUBLES, version, f"libcudart.so.{version}"), str(STEPS)]
    return Recording(work, "proc,torch,cuda,gpu", ["--torch=shapes"], ready="ready", settle=1.5, limit=100)


def export(path):
    """[path of the file of each rank]"""
    folder = os.path.join(workdir(), "ranks")
    result = subprocess.run([SONDE, "export", path, "--to", "kineto", "-o", folder + "/"], capture_output=True, text=True, check=False)
    files = [glob.glob(f"{folder}/rank_{rank}/*.pt.trace.json") for rank in range(2)]
    ok(not result.returncode and [len(f) for f in files] == [1, 1], "a file for each rank", result.stderr, files)
    return [f[0] for f in files]


def check_ids(label, content):
    """Correlation ids and External ids connect operator, call and work."""
    rows = collections.defaultdict(list)
    for e in content["traceEvents"]:
        rows[e.get("cat")].append(e)
    work = [e for kind in WORK for e in rows[kind]]
    calls = [e for e in rows["cuda_runtime"] + rows["cuda_driver"] if "correlation" in e["args"]]
    by_id = {e["args"]["correlation"]: e for e in calls}
    ok(len(calls) == len(by_id) == len(work) == 3 * STEPS and {e["args"]["correlation"] for e in work} == set(by_id),
       f"{label}: each correlation id is on one call and its work ({len(work)})", len(calls), len(by_id), len(work))
    flows = [collections.Counter(e["id"] for e in rows["ac2g"] if e["ph"] == phase) for phase in "sf"]
    ok(flows[0] == flows[1] == collections.Counter(list(by_id)), f"{label}: flows have the correlation ids", flows)
    operators = {e["args"]["External id"]: e["name"] for e in rows["cpu_op"]}
    ok(len(operators) == len(rows["cpu_op"]), f"{label}: each operator has its External id ({len(operators)})")
    around = {kind: {operators.get(e["args"].get("External id")) for e in work if e["name"] == kind} for kind in (GEMM, COPY, REDUCE)}
    ok(around == {GEMM: {"double::gemm"}, COPY: {"double::gemm"}, REDUCE: {None}}, f"{label}: work has the id of its operator", around)
    ok(all(e["args"].get("External id") == by_id[e["args"]["correlation"]]["args"].get("External id") for e in work),
       f"{label}: a call and its work have the same id")
    linear = [e["args"] for e in rows["cpu_op"] if e["name"] == "aten::addmm"]
    ok(len(linear) == STEPS and all(a["Input Dims"] == [[4], [2, 16], [16, 4]] and a["Input type"] == ["float"] * 3 for a in linear),
       f"{label}: shapes and types of aten::addmm", linear[:1])
    ok({e["name"] for e in rows["cuda_sync"]} == {"Stream Sync"} and len(rows["cuda_sync"]) == 2 * STEPS, f"{label}: waits for streams",
       collections.Counter(e["name"] for e in rows["cuda_sync"]))
    ok([d["name"] for d in content["deviceProperties"]] == ["Simulated GPU"] * 2, f"{label}: properties of the GPUs", content["deviceProperties"])


def check_annotations(label, content):
    """A row on the GPU for each range and stream: from the first to the last work of the calls within the range"""
    events = content["traceEvents"]
    work = {e["args"]["correlation"]: e for e in events if e.get("cat") in WORK}
    calls = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and e["args"].get("correlation") in work]
    want = collections.Counter()
    for r in events:
        # sonde adds the steps, no range of the program
        if r.get("cat") != "user_annotation" or r["name"].startswith("ProfilerStep#"):
            continue
        launched = collections.defaultdict(list)
        for c in calls:
            if c["tid"] == r["tid"] and r["ts"] <= c["ts"] <= r["ts"] + r["dur"]:
                w = work[c["args"]["correlation"]]
                launched[w["pid"], w["tid"]].append(w)
        for at, list_of in launched.items():
            want[r["name"], r["args"]["External id"], at, round(min(w["ts"] for w in list_of), 3), round(max(w["ts"] + w["dur"] for w in list_of), 3)] += 1
    got = collections.Counter((e["name"], e["args"]["External id"], (e["pid"], e["tid"]), round(e["ts"], 3), round(e["ts"] + e["dur"], 3))
                              for e in events if e.get("cat") == "gpu_user_annotation")
    ok(got == want and got, f"{label}: ranges on GPUs ({len(got)})", got - want, want - got)


def report(path, pid, name, table):
    result = subprocess.run([SONDE, "report", path, name, "-p", str(pid), "--format", "json"], capture_output=True, text=True, check=True)
    return json.loads(result.stdout)["tables"][table]


def near(label, got, want):
    ok(abs(got - want) <= want / 100, f"{label}: within 1% of sonde's report", got, want)


def compare(rank, path, pid, hta, tensorboard):
    gpu = report(path, pid, "gpu", "devices")[0]
    kernels = {row["name"]: row for row in report(path, pid, "cuda-kern", "summary")}
    copies = report(path, pid, "cuda-mem-time", "summary")
    temporal = hta["temporal"][rank]
    near(f"HTA, rank {rank}: busy", temporal["compute_time(us)"] + temporal["non_compute_time(us)"], gpu["busy_ns"] / 1000)
    near(f"HTA, rank {rank}: idle", temporal["idle_time(us)"], gpu["idle_ns"] / 1000)
    near(f"HTA, rank {rank}: computation", temporal["compute_time(us)"], kernels[GEMM]["total_ns"] / 1000)
    for name in (GEMM, REDUCE):
        row = next(row for row in hta["kernels"] if row["rank"] == rank and row["name"] == name)
        near(f"HTA, rank {rank}: {name}", row["sum (us)"], kernels[name]["total_ns"] / 1000)
        ok(tensorboard["kernels"][name][0] == kernels[name]["instances"], f"TensorBoard, rank {rank}: calls of {name}", tensorboard["kernels"])
        near(f"TensorBoard, rank {rank}: {name}", tensorboard["kernels"][name][1], kernels[name]["total_ns"] / 1000)
    launched, ran = hta["launches"][str(rank)]
    ok(launched == sum(k["instances"] for k in kernels.values()) + sum(c["count"] for c in copies), f"HTA, rank {rank}: launches", launched)
    near(f"HTA, rank {rank}: work of all launches", ran, (sum(k["total_ns"] for k in kernels.values()) + sum(c["total_ns"] for c in copies)) / 1000)
    ok(tensorboard["operators"].get("double::gemm") == STEPS, f"TensorBoard, rank {rank}: operators", tensorboard["operators"])


def check_readers(r, files, pids):
    python = os.path.join(B, "readers/bin/python")
    with locked(os.path.join(B, "readers")):
        if not install(python, *PACKAGES):
            skip("HTA and TensorBoard's plugin read the files", "they can't be installed from PyPI")
            return
    folder = os.path.join(workdir(), "all")
    os.mkdir(folder)
    for file in files:
        shutil.copy(file, folder)
    result = subprocess.run([python, os.path.join(HERE, "kineto_readers.py"), folder, *files], capture_output=True, text=True, check=False)
    if not ok(not result.returncode, "HTA and TensorBoard's plugin read the files", result.stderr[-2000:]):
        return
    found = json.loads(result.stdout.splitlines()[-1])
    hta = found["hta"]
    for rank, pid in enumerate(pids):
        worker = next(v for k, v in found["tensorboard"].items() if k.endswith(f"_{pid}"))
        compare(rank, r.path, pid, hta, worker)
    ok({(rank, stream) for rank, stream, *_ in hta["queued"]} == {(0, 13), (0, 14), (1, 13), (1, 14)}, "HTA: queues of each rank and stream", hta["queued"])
    ok(all(0 <= row["comp_comm_overlap_pctg"] <= 100 for row in hta["overlap"]), "HTA: overlap of communication", hta["overlap"])
    ok({row["idle_category"] for row in hta["idle"]} >= {"host_wait"} and hta["difference"], "HTA: idle time and the difference of two traces",
       hta["idle"], hta["difference"])
    ok(hta["stragglers"] in ([0], [1]), "HTA: the straggler is one of the ranks", hta["stragglers"])


def main():
    r = record()
    ok(not r.status, "two ranks are recorded", r.messages)
    files = export(r.path)
    contents = []
    for file in files:
        with open(file) as f:
            contents.append(json.load(f))
    for rank, content in enumerate(contents):
        ok(content["distributedInfo"]["rank"] == rank and content["distributedInfo"]["world_size"] == 2, f"rank {rank}: distributedInfo")
        check_ids(f"rank {rank}", content)
        check_annotations(f"rank {rank}", content)
    check_readers(r, files, [int(os.path.basename(f).split("_")[1].split(".")[0]) for f in files])
    done()


main()
