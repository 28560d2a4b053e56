#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The model and the reports of GPU work, compared with the work that the doubles of CUDA logged: each work item is shown once, joined
to its call, thread and, where known, line of Python."""
# test: timeout=400 parallel
import collections
import os
import subprocess

from model_lib import APIS, SONDE, compare, kind_of, report, rows_of, sums, tmp
from shim_lib import read_truth, setting, training, versions
from sonde_trace import Trace
from tap import done, ok, skip, skip_all

number = 0


class Run:
    """A recorded training, and the work that its doubles logged"""

    def __init__(self, version, *args, families="gpu,cuda", options=(), cuda="", cupti="", wrap=(), program=None, **env):
        global number
        number += 1
        self.path, truth = os.path.join(tmp, f"{number}.sonde"), os.path.join(tmp, f"truth{number}")
        # cuInit waits for the probes for 300 ms at most, and for 1 s here: on a busy machine they may come later
        env = dict(os.environ, FAKE_CUDA=cuda, FAKE_CUPTI=cupti, FAKE_CUDA_TRUTH=truth, **{"SONDE_CUPTI_WAIT": "1000", **env})
        self.done = subprocess.run([SONDE, "record", "-f", "-o", self.path, "-t", families, *options, "--", *wrap,
                                    *(program or [training(version)]), *args], env=env, capture_output=True, text=True, timeout=200)
        self.truth = read_truth(truth)
        self.trace = Trace(self.path)
        self.error = max((e["error"] for e in self.trace.events("gpu_clock")), default=0) + 3
        self.lost = [e for e in self.trace.events("meta_loss") if e["reason"] != 8]
        # threads by their tids in their own pid namespace
        self.tids = {}
        for e in self.trace.events("proc_task"):
            self.tids[e["pid"], e["ns_tid"]] = e["tid"]
        for e in self.trace.events("proc_fork"):
            self.tids[e["child_pid"], e["child_ns_tid"]] = e["child_tid"]
        self.pids = {e["child_ns_pid"]: e["child_pid"] for e in self.trace.events("proc_fork")}
        os.unlink(truth)

    @property
    def rows(self):
        rows, self.notes = rows_of(self.path)
        return rows


def whole(label, run):
    ok(run.done.returncode == 0 and not run.lost, f"{label}: no losses", run.done.stderr, run.lost)


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


def namespace(families):
    label = f"a pid namespace, -t {families}"
    # sonde preattaches to the libraries of unshare, not to the training's: a process that has them mapped makes sure
    # that they are probed before the training's first call
    idle = subprocess.Popen([training(versions()[-1]), "-w"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    run = Run(versions()[-1], "-t", "3", "-n", "30", families=families, wrap=["unshare", "--pid", "--fork"])
    idle.kill()
    idle.wait()
    inner = {e["pid"] for e in run.truth["call"]}
    pids = {e["pid"] for e in run.trace.events("gpu_call")}
    if not ok(len(inner) == 1 and len(pids) == 1 and inner != pids, f"{label}: the process has another pid in its namespace", inner, pids,
              run.done.stderr):
        return
    pid = pids.pop()
    if "proc" in families:
        compare(label, run, thread=lambda p, ns: run.tids.get((p, ns)), pid_of=lambda ns: pid)
        return
    # tids in order, as they rise like those of the namespace
    tids = sorted({e["tid"] for e in run.trace.events("cuda_launch")})
    inner = dict(zip(sorted({e["tid"] for e in run.truth["call"]}), tids))
    calls = {e["correlation"]: inner[e["tid"]] for e in run.truth["call"]}
    rows = run.rows
    joined = [r for r in rows if r["tid"] is not None]
    ok(all(r["tid"] == calls[r["correlation"]] for r in joined) and len(joined) > len(rows) // 2,
       f"{label}: no thread is wrong, and most threads are known", len(rows), len(joined))


def calls_alone():
    v = versions()[-1]
    run = Run(v, "-g", "-t", "2", "-n", "40", families="cuda", cuda=setting(devices=2))
    rows = collections.Counter()
    tids, marked = set(), True
    for r in run.rows:
        rows[kind_of(r)] += 1
        tids.add(r["tid"])
        marked &= bool(r["only_by_calls"] and r["device"] is None and r["api"] in APIS[kind_of(r)])
    truth = {k: len([e for e in run.truth[k] if k == "graph" or not e["graph"]]) for k in ("kernel", "copy", "set")}
    ok(dict(rows) == dict(truth, graph=80), "no shim: each launch, copy, set and graph is shown once, by its call", rows, truth)
    ok(marked and tids == {e["tid"] for e in run.truth["call"]}, "no shim: times are marked as the host's, and have their thread", tids)
    kern = report(run.path, "cuda-kern")
    ok(not kern["tables"]["summary"] and sum(r["instances"] for r in kern["tables"]["on_host"]) == truth["kernel"],
       "no shim: cuda-kern has them in a table of their own", kern["tables"])


def none_and_many():
    v = versions()[-1]
    run = Run(v, cuda=setting(devices=0))
    got = report(run.path, "cuda-kern")
    text = subprocess.run([SONDE, "report", run.path, "cuda-kern"], capture_output=True, text=True).stdout
    ok(not got["tables"]["summary"] and "No kernel was recorded" in text, "no device: no rows, and a note", text)
    # a worker that gets no CPU for a second loses records, and says so
    for _ in range(4):
        run = Run(v, "-n", "2000", "-k", "500", "-u", "1", "-s", "8", "-p", "4000")
        if not run.lost:
            break
    whole("1,000,000 kernels", run)
    sums("1,000,000 kernels", run)
    reported = report(run.path, "cuda-kern")["tables"]["coverage"][0]
    ok(reported["kernels"] == 1000000 and not reported["unjoined"] and not reported["unprobed"] and not reported["unseen"],
       "1,000,000 kernels: each has its launch", reported)


def stacks():
    """Kernels by the stack of their launch, in a Python program with marked lines."""
    if "--cuda=stacks" not in subprocess.run([SONDE, "list", "options"], capture_output=True, text=True).stdout:
        skip("Python stacks", "this build has no --cuda=stacks")
        return
    v, program = versions()[-1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "launches.py")
    cudart = os.path.join(os.path.dirname(training(v)), f"libcudart.so.{v}")
    run = Run(v, cudart, "40", options=["--cuda=stacks"], program=["/usr/bin/python3", program])
    whole("Python stacks", run)
    got = report(run.path, "cuda-kern-launch")["tables"]
    stacks = collections.Counter()
    for r in got["stacks"]:
        inner = r["line"].replace(" ", "").split(";")
        stacks[next((f for f in ("forward", "backward") if any(f in frame for frame in inner)), "?"), r["longest_kernel"]] += r["kernels"]
    ok(stacks == {("forward", "void gemm<128>(float*, float*, float*, int)"): 80, ("backward", "softmax(float*, int)"): 120},
       "Python stacks: each kernel has the line that launched it", stacks, got["stacks"])
    line = next(i + 1 for i, text in enumerate(open(program)) if text.rstrip().endswith("# line: launch"))
    ok([(r["line"], r["kernels"], r["launches"]) for r in got["lines"]] == [(f"launches.py:{line} launch", 200, 200)],
       "Python stacks: kernels by line are correct", got["lines"])


def lost():
    v = versions()[-1]
    run = Run(v, "-n", "20", cupti="drop=77")
    reported = report(run.path, "cuda-kern")["tables"]["coverage"][0]
    ok(reported["dropped_records"] == 77, "records that CUPTI dropped are reported", reported)
    run = Run(v, "-n", "200", "-k", "2000", "-u", "1", SONDE_CUPTI_BUFFERS="1")
    dropped = sum(e["records"] for e in run.trace.events("gpu_dropped"))
    made = sum(e["traced"] for e in run.truth["kernel"])
    reported = sum(r["instances"] for r in report(run.path, "cuda-kern")["tables"]["summary"])
    ok(reported <= made and (dropped > 0 or reported == made) and made - reported <= dropped + sum(e["count"] for e in run.lost),
       "a single buffer: missing records are counted", made, reported, dropped)
    print(f"# a single buffer: {made} kernels, {reported} reported, {dropped} records of all kinds dropped")


if os.geteuid():
    skip_all("tracing needs root")
versions()
joins()
namespace("proc,gpu,cuda")
namespace("gpu,cuda")
calls_alone()
stacks()
lost()
none_and_many()
done()
