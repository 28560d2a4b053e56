#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the model and the reports make of GPU work, against what the doubles of CUDA did: each piece of work once, joined to the
call, the thread and, where it is known, the line of Python that asked for it."""
# test: timeout=400
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shim_lib import ROOT, done, ok, read_truth, setting, training, versions  # noqa: E402
from sonde_trace import Trace  # noqa: E402

SONDE = os.environ.get("SONDE", os.path.join(ROOT, "build", "sonde"))
NAMES = {"_Z4gemmILi128EEvPfS0_S0_i": "void gemm<128>(float*, float*, float*, int)", "_Z7softmaxPfi": "softmax(float*, int)",
         "_Z10layer_normPfS_i": "layer_norm(float*, float*, int)", "_Z4adamPfS_S_f": "adam(float*, float*, float*, float)"}
COPIES = {1: "[CUDA memcpy Host-to-Device]", 2: "[CUDA memcpy Device-to-Host]", 8: "[CUDA memcpy Device-to-Device]",
          10: "[CUDA memcpy Peer-to-Peer]"}
APIS = {"kernel": {"cudaLaunchKernel"}, "copy": {"cudaMemcpyAsync", "cudaMemcpy", "cudaMemcpyPeerAsync"},
        "set": {"cudaMemsetAsync"}, "graph": {"cudaGraphLaunch"}}
tmp = tempfile.mkdtemp(prefix="sonde-model-")
number = 0


def report(path, name, *options):
    r = subprocess.run([SONDE, "report", path, name, "--format", "json", *options], capture_output=True, text=True, timeout=200)
    return json.loads(r.stdout) if r.returncode == 0 else ok(False, f"report {name}", r.stderr)


class Run:
    """A training that is recorded, and what it did in truth."""

    def __init__(self, version, *args, families="gpu,cuda", options=(), cuda="", cupti="", wrap=(), program=None, **env):
        global number
        number += 1
        self.path, truth = os.path.join(tmp, f"{number}.sonde"), os.path.join(tmp, f"truth{number}")
        env = dict(os.environ, FAKE_CUDA=cuda, FAKE_CUPTI=cupti, FAKE_CUDA_TRUTH=truth, **env)
        self.done = subprocess.run([SONDE, "record", "-f", "-o", self.path, "-t", families, *options, "--", *wrap,
                                    *(program or [training(version)]), *args], env=env, capture_output=True, text=True, timeout=200)
        self.truth = read_truth(truth)
        self.trace = Trace(self.path)
        self.error = max((e["error"] for e in self.trace.events("gpu_clock")), default=0) + 3
        self.lost = [e for e in self.trace.events("meta_loss") if e["reason"] != 8]
        # threads as their own namespace numbers them
        self.tids = {}
        for e in self.trace.events("proc_task"):
            self.tids[e["pid"], e["ns_tid"]] = e["tid"]
        for e in self.trace.events("proc_fork"):
            self.tids[e["child_pid"], e["child_ns_tid"]] = e["child_tid"]
        self.pids = {e["child_ns_pid"]: e["child_pid"] for e in self.trace.events("proc_fork")}
        os.unlink(truth)

    def rows(self):
        r = report(self.path, "cuda-trace")
        self.notes = r.get("notes", [])
        for row in r["tables"]["trace"]:
            for field in ("start_ns", "launch_start_ns"):
                if row[field] is not None:
                    row[field] += r["trace"]["start_ns"]
            yield row


def kind_of(row):
    if row["name"] == "[CUDA graph]":
        return "graph"
    return "copy" if "memcpy" in row["name"] else "set" if "memset" in row["name"] else "kernel"


def key_of(kind, e):
    """Of the truth, as identity() has it of a row."""
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
    for row in run.rows():
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
            if r["tid"] != tid or (probed and r["api"] not in api) or r["host_time"]:
                wrong.append((kind, r, e, c))
            elif r["launch_start_ns"] > c["start"] + run.error or r["launch_start_ns"] + r["launch_ns"] < c["end"] - run.error:
                wrong.append(("times", r, e, c))
            elif r["queued_ns"] != max(0, r["start_ns"] - r["launch_start_ns"] - r["launch_ns"]):
                wrong.append(("queued", r, e, c))
    ok(not wrong, f"{label}: each joined to its call and thread", len(wrong), wrong[:2])
    ok(times <= run.error, f"{label}: times equal within {run.error} ns, the clock's error", f"off by {times}")
    return rows


def sums(label, run):
    """The reports' sums against the truth's."""
    kernels = collections.defaultdict(list)
    for e in run.truth["kernel"]:
        if e["traced"]:
            kernels[NAMES[e["name"]]].append(e["end"] - e["start"])
    got = {r["name"]: r for r in report(run.path, "cuda-kern")["tables"]["summary"]}
    n = sum(len(v) for v in kernels.values())
    ok({k: v["instances"] for k, v in got.items()} == {k: len(v) for k, v in kernels.items()},
       f"{label}: cuda-kern counts all {n} kernels", {k: v["instances"] for k, v in got.items()})
    ok(all(abs(got[k]["total_ns"] - sum(v)) <= 2 * len(v) * run.error and abs(got[k]["max_ns"] - max(v)) <= 2 * run.error
           for k, v in kernels.items() if k in got) and got, f"{label}: and their time",
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
    ok(size == want and time == want, f"{label}: cuda-mem-size and cuda-mem-time have its bytes", size, time, want)


def whole(label, run):
    ok(run.done.returncode == 0 and not run.lost, f"{label}: nothing lost", run.done.stderr, run.lost)


def joins():
    for v in versions():
        run = Run(v, "-d", "2", "-t", "4", "-n", "60", "-p", "1000", cuda=setting(devices=2), cupti=setting(ppm=100, jitter_ns=1000))
        whole(f"CUDA {v}", run)
        compare(f"CUDA {v}", run)
        sums(f"CUDA {v}", run)
    v = versions()[-1]
    run = Run(v, "-d", "8", "-t", "8", "-s", "64", "-k", "128", "-n", "20", "-u", "5", cuda=setting(devices=8))
    compare("8 devices, 64 streams", run)
    sums("8 devices, 64 streams", run)
    run = Run(v, "-g", "-n", "50")
    rows = compare("graphs as a whole", run, kinds=("kernel", "copy", "graph"))
    ok(len({r["launch_start_ns"] for r in rows["graph"]}) == 50, "graphs as a whole: each has a launch of its own")
    run = Run(v, "-g", "-n", "50", options=["--gpu=nodes"])
    rows = compare("graphs' nodes", run)
    launches = collections.Counter(r["launch_start_ns"] for k in ("kernel", "set") for r in rows[k] if r["graph"])
    ok(set(launches.values()) == {4} and len(launches) == 50, "graphs' nodes: all nodes of a launch have that launch", launches)
    sums("graphs' nodes", run)
    compare("without uprobes", Run(v, "-t", "2", "-n", "30", families="gpu"), probed=False)


def namespace():
    run = Run(versions()[-1], "-t", "3", "-n", "30", wrap=["unshare", "--pid", "--fork"])
    inner = {e["pid"] for e in run.truth["call"]}
    pids = {pid for pid in {e["pid"] for e in run.trace.events("gpu_call")}}
    if not ok(len(inner) == 1 and len(pids) == 1 and inner != pids, "a pid namespace: the process has another number in it", inner, pids,
              run.done.stderr):
        return
    pid = pids.pop()
    compare("a pid namespace", run, thread=lambda p, ns: run.tids.get((p, ns)), pid_of=lambda ns: pid)


def calls_alone():
    v = versions()[-1]
    run = Run(v, "-g", "-t", "2", "-n", "40", families="cuda", cuda=setting(devices=2))
    rows = collections.Counter()
    tids, marked = set(), True
    for r in run.rows():
        rows[kind_of(r)] += 1
        tids.add(r["tid"])
        marked &= bool(r["host_time"] and r["device"] is None and r["api"] in APIS[kind_of(r)])
    truth = {k: len([e for e in run.truth[k] if k == "graph" or not e["graph"]]) for k in ("kernel", "copy", "set")}
    ok(dict(rows) == dict(truth, graph=80), "no shim: each launch, copy, set and graph once, by its call", rows, truth)
    ok(marked and tids == {e["tid"] for e in run.truth["call"]}, "no shim: marked as the host's time, with its thread", tids)
    kern = report(run.path, "cuda-kern")
    ok(not kern["tables"]["summary"] and sum(r["instances"] for r in kern["tables"]["host_time"]) == truth["kernel"],
       "no shim: cuda-kern has them in a table of their own", kern["tables"])


def none_and_many():
    v = versions()[-1]
    run = Run(v, cuda=setting(devices=0))
    got = report(run.path, "cuda-kern")
    ok(not got["tables"]["summary"] and "No kernel was recorded" in str(got), "no device: nothing, and that is said", got)
    run = Run(v, "-n", "2000", "-k", "500", "-u", "1", "-s", "8")
    whole("1,000,000 kernels", run)
    sums("1,000,000 kernels", run)
    notes = str(report(run.path, "cuda-kern")).replace("\n", " ")
    ok("not known" not in notes and "CUPTI alone" not in notes and "no kernel was seen" not in notes,
       "1,000,000 kernels: each has its launch", notes[-1500:])


def lost():
    v = versions()[-1]
    run = Run(v, "-n", "20", cupti="drop=77")
    notes = str(report(run.path, "cuda-kern"))
    ok("77 records and" in notes, "what CUPTI dropped is told", notes[-1500:])
    run = Run(v, "-n", "200", "-k", "2000", "-u", "1", SONDE_CUPTI_BUFFERS="1")
    dropped = sum(e["records"] for e in run.trace.events("gpu_dropped"))
    made = sum(e["traced"] for e in run.truth["kernel"])
    told = sum(r["instances"] for r in report(run.path, "cuda-kern")["tables"]["summary"])
    ok(told <= made and (dropped > 0 or told == made) and made - told <= dropped + sum(e["count"] for e in run.lost),
       "a single buffer: what is missing is counted", made, told, dropped)
    print(f"# a single buffer: {made} kernels, {told} told, {dropped} records of all kinds dropped")


if os.geteuid():
    print("ok 1 - everything # SKIP tracing needs root\n1..1")
    sys.exit(0)
versions()
joins()
namespace()
calls_alone()
none_and_many()
lost()
done()
