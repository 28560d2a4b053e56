#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Figures are of the traced time: reports and stacks cut CUDA and NCCL calls, GPU work, waits and samples at its edges, for each of
several traces at its own edges."""
import json
import os
import subprocess

from export_lib import ROOT, SONDE, TMP, perfetto_file
from sonde_cli import make_trace
from tap import done, ok, skip

GOLDEN = os.path.join(ROOT, "tests", "golden")
MS = 1000000
# Of each trace: the time from the first attached probe to the last, and the traced time from live to stop, in seconds.
TRACES = {"one": (1, 2, 4, 5), "two": (6, 7, 8, 8.5)}
# Spans of each thread across the start, within, across the end, before, after and around the traced time.
SPANS = {"one": [(1.5, 2.5), (2.75, 3), (3.5, 4.5), (1.1, 1.4), (4.6, 4.9)], "two": [(6.5, 7.25), (7.5, 7.625), (7.75, 8.25), (6.1, 6.2)]}
ACROSS_ALL = {"one": (1.2, 4.95), "two": (6.05, 8.45)}


def inside(name, span):
    _, live, stop, _ = TRACES[name]
    return max(0, round((min(span[1], stop) - max(span[0], live)) * 1000)) * MS


def lines_of(name, schema, kinds):
    begin, live, stop, end = TRACES[name]
    lines = [f'proc_task time=@{begin} pid=10 tid=10 ppid=1 comm="train"', f"meta_cost time=@{live + 0.0001} wall=100000",
             *(f'meta_probe time=@{begin} number={i + 1} family={family} name="{function}" program="p" section="s"'
               for i, (family, function) in enumerate(schema["probes"]))]
    for tid, kind in enumerate(kinds):
        spans = [*SPANS[name], *([ACROSS_ALL[name]] if kind.get("nests") else [])]
        lines += [f"{kind['event']} pid=10 tid={20 + tid} start=@{a} time=@{b} {kind['fields']}" for a, b in spans]
    lines += [f"sample_cpu time=@{t} pid=10 tid=10 period={10 * MS}" for t in schema["samples"][name]]
    lines += [f"meta_cost time=@{end} wall={round((end - live) * 1e9)}", f"meta_end time=@{end} stop=@{stop} reason=END_DURATION"]
    return "\n".join(lines) + "\n"


def schema_file():
    """The schema of traces whose meta_end has the time when tracing stopped, with family nccl"""
    path = os.path.join(TMP, "schema.json")
    with open(f"{GOLDEN}/stop.schema.json", encoding="utf-8") as f, open(f"{GOLDEN}/nccl.schema.json", encoding="utf-8") as g:
        base, nccl = json.load(f), json.load(g)
    for part, key in (("families", "name"), ("enums", "name"), ("events", "name")):
        have = {x[key] for x in base[part]}
        base[part] += [x for x in nccl[part] if x[key] not in have]
        if part != "enums":
            base[part].sort(key=lambda x: x["id"])
    with open(path, "w", encoding="utf-8") as f:
        json.dump(base, f)
    return path


def make(name, schema, kinds):
    path = os.path.join(TMP, f"{schema['name']}-{name}")
    return make_trace(path, lines_of(name, schema, kinds), schema_file())


def tables(files, *args):
    p = subprocess.run([SONDE, "report", *files, *args, "--format", "json"], capture_output=True, text=True)
    return json.loads(p.stdout)["tables"] if ok(p.returncode == 0, f"report {' '.join(args)}", p.stderr) else {}


def folded(files, event):
    p = subprocess.run([SONDE, "export", *files, "--to", "folded", "--event", event], capture_output=True, text=True)
    ok(p.returncode == 0, f"export of {event}", p.stderr)
    return sum(int(line.rsplit(" ", 1)[1]) for line in p.stdout.splitlines())


def total(names, kind):
    return sum(inside(n, s) for n in names for s in [*SPANS[n], *([ACROSS_ALL[n]] if kind.get("nests") else [])])


CUDA = {"name": "cuda", "probes": [(3, "cudaDeviceSynchronize"), (3, "cudaMemcpy")],
        "samples": {"one": (1.5, 2.5, 3.5, 4.5), "two": (6.5, 7.5, 8.25)}}
SYNC = {"event": "cuda_sync", "fields": "probe=1", "nests": True}
COPY = {"event": "cuda_copy", "fields": "probe=2 bytes=1000 kind=CUDA_COPY_HTOD", "nests": True}
KERNEL = {"event": "gpu_kernel", "fields": "name=1 device=0 context=1 stream=7"}
MEMCPY = {"event": "gpu_memcpy", "fields": "bytes=4096 kind=GPU_COPY_HTOD device=0 context=1 stream=8"}
OFF = {"event": "sample_off", "fields": ""}
WAIT = {"event": "gil_wait", "fields": "gil=0x7000 result=GIL_WAIT_SIGNAL number=1"}
NCCL = {"name": "nccl", "probes": [(5, "ncclAllReduce"), (5, "ncclSend")],
        "samples": {"one": (), "two": ()}}
REDUCE = {"event": "nccl_collective", "fields": "probe=1 comm=0x55 bytes=4096 count=1024", "nests": True}
SEND = {"event": "nccl_p2p", "fields": "probe=2 comm=0x55 bytes=4096 peer=1", "nests": True}


def ended(names, kind):
    """The spans that ended within the traced time. A call that its end cuts had not returned, and is in no sum."""
    return sum(inside(n, s) for n in names for s in [*SPANS[n], *([ACROSS_ALL[n]] if kind.get("nests") else [])]
               if s[1] <= TRACES[n][2])


def cut(names, kind):
    return sum(s[0] < TRACES[n][2] < s[1] for n in names for s in [*SPANS[n], *([ACROSS_ALL[n]] if kind.get("nests") else [])])


def check_calls(names, files, report, kinds, label):
    """Checks the sums of calls by function and by thread."""
    got = tables(files, report)
    for key, function in kinds:
        kind = kinds[key, function]
        for table, rows in got.items():
            rows = [r for r in rows if r.get("name") == function and "total_ns" in r]
            if rows:
                sums = sum(r["total_ns"] for r in rows)
                ok(sums == ended(names, kind), f"{label}: {report}: {table}: {function}", (sums, ended(names, kind)))
                if "untimed" in rows[0]:
                    open_calls = sum(r["untimed"] for r in rows)
                    ok(open_calls == cut(names, kind), f"{label}: {report}: {table}: {function}: open calls", open_calls)


def check_cuda(names, files, label):
    check_calls(names, files, "cuda-api", {("api", "cudaDeviceSynchronize"): SYNC, ("api", "cudaMemcpy"): COPY}, label)
    kernels = next(iter(tables(files, "cuda-kern").values()))
    sums = sum(r.get("total_ns", 0) for r in kernels)
    ok(sums == ended(names, KERNEL), f"{label}: cuda-kern", (sums, ended(names, KERNEL), kernels[:2]))
    copies = next(iter(tables(files, "cuda-mem-time").values()))
    sums = sum(r.get("total_ns", 0) for r in copies)
    ok(sums == ended(names, MEMCPY), f"{label}: cuda-mem-time", (sums, ended(names, MEMCPY), copies[:2]))
    busy = next(iter(tables(files, "gpu").values()))
    ok(busy and busy[0]["busy_ns"] == total(names, KERNEL), f"{label}: gpu", (busy[:1], total(names, KERNEL)))
    for event, kind in (("cuda_sync", SYNC), ("cuda_copy", COPY), ("off-cpu", OFF), ("gil-wait", WAIT), ("gil-blame", WAIT)):
        sums = folded(files, event)
        ok(sums == total(names, kind), f"{label}: stacks of {event}", (sums, total(names, kind)))
    inner = sum(TRACES[n][1] <= t <= TRACES[n][2] for n in names for t in CUDA["samples"][n])
    sums = folded(files, "on-cpu")
    ok(sums == inner * 10 * MS, f"{label}: samples", (sums, inner))


def check_marks(files):
    """Perfetto marks the start and end of each trace's traced time."""
    out = os.path.join(TMP, "marks.pftrace")
    subprocess.run([SONDE, "export", *files, "--to", "perfetto", "-f", "-o", out], check=True)
    with open(out, "rb") as f:
        data = f.read()
    pb, why = perfetto_file.classes()
    if not pb:
        skip("marks of two traces", why)
        return
    marks = sorted((s.start, s.name) for s in perfetto_file.PerfettoFile(pb, data).slices if s.name.startswith("sonde: "))
    ok([n.split()[1] for _, n in marks] == ["all", "tracing", "all", "tracing"], "marks of two traces", marks)


def main():
    cuda = {n: make(n, CUDA, (SYNC, COPY, KERNEL, MEMCPY, OFF, WAIT)) for n in TRACES}
    nccl = {n: make(n, NCCL, (REDUCE, SEND)) for n in TRACES}
    for names in (("one",), ("two",), ("one", "two"), ("two", "one")):
        label = " and ".join(names)
        check_cuda(names, [cuda[n] for n in names], label)
        check_calls(names, [nccl[n] for n in names], "nccl-api", {("nccl", "ncclAllReduce"): REDUCE, ("nccl", "ncclSend"): SEND},
                    label)
    check_marks(list(cuda.values()))
    done()


main()
