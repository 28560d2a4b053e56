#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests the model and the reports on the shim's records without eBPF: the records are read within the process and written as a
trace. Calls of libcudart, which uprobes would record, are added from the log of the doubles."""
# test: timeout=200 parallel gate
import collections
import json
import os
import subprocess

from model_lib import compare, report, rows_of, sums, tmp
from shim_lib import ALL, BUILD, GRAPHS, NODES, ROOT, Shimmed, setting, versions
from tap import done, ok, skip_all

MAKE_TRACE = os.path.join(BUILD, "tests", "golden", "make_trace")
START = 1000000000000  # of make_trace's traces
EVENTS = ("kernel", "memcpy", "memset", "graph", "memory", "call", "device", "name", "clock", "dropped")
NOT_COPIED = ("start", "time", "tid", "text", "channel", "value", "channel_type")
# CUPTI_RUNTIME_TRACE_CBID_..
RUNTIME = {211: ("cuda_launch", 1), 311: ("cuda_graph_launch", 3), 41: ("cuda_copy", 2), 31: ("cuda_copy", 4), 161: ("cuda_copy_peer", 5),
           51: ("cuda_set", 6)}
PROBES = ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch", "cudaMemcpy", "cudaMemcpyPeerAsync", "cudaMemsetAsync"]
number = 0


def present_schema():
    """The schema of the golden traces, with the field that gpu_call has got since."""
    with open(os.path.join(ROOT, "tests", "golden", "gpu.schema.json")) as f:
        schema = json.load(f)
    for field in next(e for e in schema["events"] if e["name"] == "gpu_call")["fields"]:
        if field["name"] == "pad":
            field["name"] = "runtime"
    path = os.path.join(tmp, "schema.json")
    with open(path, "w") as f:
        json.dump(schema, f)
    return path


SCHEMA = present_schema()


class Run:
    def __init__(self, version, *args, uprobes=True, calls=True, **more):
        global number
        number += 1
        shimmed = Shimmed(version, *args, **more)
        self.truth, self.error, self.got = shimmed.truth, shimmed.error, shimmed.got
        self.path = os.path.join(tmp, f"join{number}.sonde")
        self.first = min(e["start"] for v in self.truth.values() for e in v if e["start"]) - 1000
        self.pid = self.truth["call"][0]["pid"] if self.truth["call"] else 1
        with open(self.path + ".events", "w") as f:
            self.write(f, uprobes, calls)
        subprocess.run([MAKE_TRACE, SCHEMA, self.path + ".events", self.path], check=True)
        os.unlink(self.path + ".events")

    def at(self, time):
        return max(1, time - self.first + START)

    def write(self, f, uprobes, calls):
        for i, name in enumerate(PROBES):
            f.write(f'meta_probe time=@0 number={i + 1} family=3 name="{name}"\n')
        within = {e["correlation"] for e in self.truth["runtime"]}
        for e in self.truth["runtime"] + [e for e in self.truth["call"] if e["correlation"] not in within] if uprobes else ():
            kind, probe = RUNTIME[e["kind"]] if e["runtime"] else ("cuda_sync", 0)
            work = next((w for w in self.by_correlation[e["correlation"]]), None)
            more = ""
            if work and kind == "cuda_launch":
                more = " ".join(f"{k}_{x}={v}" for k in ("grid", "block") for x, v in zip("xyz", work[k].split(",")))
            elif work and kind not in ("cuda_graph_launch", "cuda_sync"):
                more = f"bytes={work['bytes']}"
            f.write(f"{kind} probe={probe} pid={self.pid} tid={e['tid']} start={self.at(e['start'] - 20)} "
                    f"time={self.at(e['end'] + 20)} {more}\n")
        for kind in EVENTS:
            for e in self.got[kind] if calls or kind != "call" else ():
                fields = " ".join(f"{k}={v}" for k, v in e.items() if k not in NOT_COPIED)
                start = f"start={self.at(e['start'])}" if kind in ("kernel", "memcpy", "memset", "graph", "call") else ""
                text = f'text="{e["text"]}"' if kind == "name" else ""
                f.write(f"gpu_{kind} pid={self.pid} tid={e['tid']} time={self.at(e['time'])} {start} {fields} {text}\n")

    @property
    def by_correlation(self):
        if not hasattr(self, "_works"):
            self._works = collections.defaultdict(list)
            for kind in ("kernel", "copy", "set"):
                for e in self.truth[kind]:
                    self._works[e["correlation"]].append(e)
        return self._works

    @property
    def rows(self):
        rows, self.notes = rows_of(self.path)
        for r in rows:
            for field in ("start_ns", "launch_start_ns"):
                if r[field] is not None:
                    r[field] += self.first - START
        return rows


if not os.path.exists(MAKE_TRACE):
    skip_all("tests/golden/make_trace is not built")
newest = versions()[-1]
for v in versions():
    run = Run(v, "-d", "2", "-t", "4", "-n", "60", "-p", "1000", cuda=setting(devices=2), cupti=setting(ppm=100, jitter_ns=1000))
    compare(f"CUDA {v}", run)
    sums(f"CUDA {v}", run)
run = Run(newest, "-d", "8", "-t", "8", "-s", "64", "-k", "128", "-n", "10", "-u", "5", cuda=setting(devices=8))
compare("8 devices, 64 streams", run)
sums("8 devices, 64 streams", run)
run = Run(newest, "-g", "-n", "50", groups=ALL | GRAPHS)
rows = compare("graphs as a whole", run, kinds=("kernel", "copy", "graph"))
ok(len({r["launch_start_ns"] for r in rows["graph"]}) == 50, "graphs as a whole: each has its own launch")
run = Run(newest, "-g", "-n", "50", groups=ALL | NODES)
rows = compare("graphs' nodes", run)
launches = collections.Counter(r["launch_start_ns"] for k in ("kernel", "set") for r in rows[k] if r["graph"])
ok(set(launches.values()) == {4} and len(launches) == 50, "graphs' nodes: all nodes of a launch refer to it", launches)
compare("without uprobes", Run(newest, "-t", "2", "-n", "30", uprobes=False), probed=False)
run = Run(newest, "-g", "-s", "4", "-n", "60", groups=ALL | NODES, calls=False)
compare("without driver calls, by order", run)
run = Run(newest, "-t", "4", "-n", "60", "-k", "40", calls=False)
rows = run.rows
ok(len(rows) == sum(len(run.truth[k]) for k in ("kernel", "copy", "set")) and not any(r["api"] for r in rows),
   "concurrent threads without driver calls: no launch is guessed", len(rows))
run = Run(newest, "-n", "5", cupti="drop=77")
ok(report(run.path, "cuda-kern")["tables"]["coverage"][0]["dropped_records"] == 77, "records that CUPTI dropped are reported")
done()
