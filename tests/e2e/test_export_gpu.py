#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel timeout=300 gate
"""Synthetic GPU work (gpu_scene.py) in every format, read back with the official message classes, trace_processor, JSON and
SQL; a recording that was cut off; a million kernels in bounded memory."""
import collections
import csv
import json
import os
import sqlite3
import subprocess
import time

import gpu_scene
import perfetto_file
import trace_processor
from export_lib import ROOT, SONDE, TMP, B, clean, export, from_cell, same, split_frames
from gpu_scene import LABEL, MODEL
from tap import done, ok, skip

WORDS = {"GPU_MEMORY_PINNED": "pinned", "GPU_MEMORY_DEVICE": "device"}
NAMES = {100: "python3 100", 101: "worker 101", 300: "other 300"}
MARKS = ("gpu: 12 records of python3 100 lost: no buffer was free",
         "gpu: 3 records of python3 100 lost: no buffer was free; buffers of 1048576 bytes were discarded",
         "gpu: no device times of taken 400: another profiler has CUPTI",
         "gpu: the calls that launched 1 kernels, copies and sets are not known")


def arguments(w):
    """What a viewer must get for a work item."""
    out = {"device": w["device"], "stream": w["stream"], "correlation": w["correlation"]}
    if w["kind"] == "kernel":
        out.update(registers_per_thread=w["registers"], shared_mem_static=w["static_shared"],
                   shared_mem_dynamic=w["dynamic_shared"])
    else:
        out.update(bytes=w["bytes"], to=WORDS[w.get("to_memory", w.get("memory"))], asynchronous=1)
        out["bandwidth (GB/s)"] = w["bytes"] / (w["end"] - w["start"])
    if w["kind"] == "memcpy":
        out.update({"copy": "HtoD", "from": "pinned"})
    for key in ("graph", "graph_node"):
        out.update({key: w[key]} if w[key] else {})
    launch = w["launch"]
    if launch:
        out.update(launched_by=launch["function"], launching_thread=NAMES[launch["tid"]], queued_ns=w["queued"])
        out.update({"launched_at": LABEL} if launch["stack"] else {})
        out.update({"gil_at_launch": launch["gil"]} if launch["gil"] else {})
    if w.get("stream_busy"):
        out["stream_busy_ns"] = w["stream_busy"]
    if w.get("flags"):
        out["not_ended"] = 1
    return out


def row(w):
    shape = w["kind"] == "kernel"
    dims = [tuple(w[f"{d}_{a}"] for a in "xyz") if shape else (0, 0, 0) for d in ("grid", "block")]
    kernel = (clean(w["mangled"]), clean(w["title"]), "sm_90") if shape else None
    queue = f"{NAMES[w['pid']]}: stream {w['stream']}"
    return (w["start"], w["end"], clean(w["title"]), w["pid"], w["gpu"], w["kind"], 2 if shape else 0, queue, kernel, *dims,
            tuple(sorted(arguments(w).items())))


def check_work(scene, f, label):
    kernels = [(k.start, k.end, clean(k.name), k.pid, k.gpu, k.stage, k.category, k.queue,
                k.kernel and tuple(map(clean, k.kernel)), k.grid, k.block,
                tuple(sorted((a, clean(v) if isinstance(v, str) else v) for a, v in k.args.items()))) for k in f.work]
    same(f"{label}: work: times, name, process, GPU, stream, shape, arguments", kernels, map(row, scene.work))
    ok(not f.errors and not f.open, f"{label}: every reference is to an earlier packet", f.errors[:5])
    streams = {(w["pid"], w["device"], w["context"], w["stream"]) for w in scene.work}
    ok(len({k.queue_iid for k in f.work}) == len(streams), f"{label}: a track for each of {len(streams)} streams")
    ok([g.name for g in f.gpus] == [f"{MODEL} #0", f"{MODEL} #1"] and {g.architecture for g in f.gpus} == {"sm_90"},
       f"{label}: GPUs by name", f.gpus)


def launch_of(w):
    launch = w["launch"]
    return (launch["pid"], launch["tid"], launch["start"], launch["end"], launch["function"]) if launch else None


def check_launches(scene, f, label):
    by_id = collections.defaultdict(list)
    for s in f.slices:
        for number in s.submissions:
            by_id[number].append((*f.thread_of(s.track), s.start, s.end, s.name))
    ok(max(map(len, by_id.values())) == 1, f"{label}: each launch has a unique id")
    same(f"{label}: each work item refers to its launch", [(k.start, *by_id.get(k.id, [None])) for k in f.work],
         [(w["start"], launch_of(w)) for w in scene.work])
    stacks = {(s.start, s.callstack) for s in f.slices if s.submissions and s.callstack}
    path = (("main", "/home/u/train.py", 30), ("step", "/home/u/train.py", 12))
    ok(stacks == {(w["launch"]["start"], path) for w in scene.work if w["launch"] and w["launch"]["stack"]},
       f"{label}: the launches' Python stacks", stacks)
    alone = [(*f.thread_of(s.track), s.start, s.end, s.name) for s in f.slices if s.category == "gpu" and s.submissions]
    same(f"{label}: launches that only CUPTI reported", alone,
         [(u["pid"], u["tid"], u["start"], u["end"], u["function"]) for u in scene.unprobed])


def union(spans):
    total, last = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, last))
        last = max(last, end)
    return total


def check_counters(scene, f, label):
    at = scene.at
    memory = f.gpu_counter(0, "memory")
    ok(memory[:-1] == [(at(50), 1 << 20), (at(70), 3 << 20), (at(1500), 2 << 20)], f"{label}: the memory counter of a device", memory)
    ok(f.counter("GPU clock error", 100) == [[(at(0), 150), (at(1000), 90)]], f"{label}: the clock's error is shown")
    ok(f.counter("GPU records lost", 100) == [[(at(950), 12), (at(960), 15)]], f"{label}: records lost in the shim are shown")
    for gpu in 0, 1:
        values = f.gpu_counter(gpu, "busy")
        busy = sum(v / 100 * (b[0] - t) for (t, v), b in zip(values, values[1:]))
        want = union((w["start"], w["end"]) for w in scene.work if w["gpu"] == gpu)
        ok(abs(busy - want) <= 1 and values[-1][1] == 0, f"{label}: GPU {gpu} was busy for {want} ns", values[:5])


def check_perfetto(scene, pb, path, label, cut=False):
    out = os.path.join(TMP, "gpu.pftrace")
    if not pb or export(path, "perfetto", out) is None:
        return
    with open(out, "rb") as file:
        f = perfetto_file.PerfettoFile(pb, file.read())
    check_work(scene, f, label)
    check_launches(scene, f, label)
    marks = [s.name for s in f.slices if f.tracks[s.track].name == "losses"]
    ok(sorted(m for m in marks if "cut off" not in m) == sorted(MARKS) and any("cut off" in m for m in marks) == cut,
       f"{label}: unknown launches and ends are marked", marks)
    alone = [(s.start, s.end, s.name) for s in f.slices if f.tracks[s.track].name == "GPU work without device times"]
    ok(alone == [(scene.at(3000), scene.at(3040), "2 kernels, copies and sets, known only by their calls: the process had no shim")] and
       200 not in {k.pid for k in f.work}, f"{label}: a process without a shim is marked, and its calls are on no device's track", alone)
    if not cut:
        check_counters(scene, f, label)
    # each is emitted once, and the device's events are on no thread's track
    own = [s for s in f.slices if s.name.startswith("gpu_")]
    ok({s.name for s in own} == {"gpu_shim", "gpu_sync"} and not any(f.thread_of(s.track) for s in own),
       f"{label}: the shim's status is on its process's track", [s.name for s in own])
    packed = out + ".zst"
    if export(path, "perfetto", packed) is not None:
        with open(packed, "rb") as file:
            frames = [perfetto_file.PerfettoFile(pb, x) for x in split_frames(file.read())]
        ok(sum(len(x.work) for x in frames) == len(scene.work) and not any(x.errors for x in frames),
           f"{label}, compressed: the same GPU work")
    check_processor(scene, out, label)


def check_processor(scene, path, label):
    library, why = trace_processor.library()
    if not library:
        skip(f"{label}: trace_processor reads the GPU work", why)
        return
    with open(path, "rb") as file:
        tp = trace_processor.TraceProcessor(library, file.read())
    bad = tp.query("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0")
    ok(not bad, f"{label}: trace_processor loads it without complaint", bad)
    got = tp.query("SELECT s.ts, s.dur, s.name, p.pid, t.name, g.name, extract_arg(s.arg_set_id, 'stream') FROM gpu_slice s JOIN "
                   "gpu_track t ON t.id = s.track_id JOIN process p USING(upid) JOIN gpu g ON g.gpu = "
                   "extract_arg(t.dimension_arg_set_id, 'gpu')")
    want = [(str(w["start"]), str(w["end"] - w["start"]), clean(w["title"]), str(w["pid"]), row(w)[7],
             f"{MODEL} #{w['gpu']}", str(w["stream"])) for w in scene.work]
    same(f"{label}: trace_processor: times, name, process, stream, GPU", [(*r[:2], clean(r[2]), *r[3:]) for r in got], want)
    got = tp.query("SELECT a.ts, a.name, h.tid, b.ts, b.name, p.pid FROM flow f JOIN slice a ON a.id = f.slice_out JOIN "
                   "gpu_slice b ON b.id = f.slice_in JOIN thread_track t ON t.id = a.track_id JOIN thread h USING(utid) JOIN "
                   "process p ON p.upid = b.upid")
    want = [(str(w["launch"]["start"]), w["launch"]["function"], str(w["launch"]["tid"]), str(w["start"]), clean(w["title"]),
             str(w["pid"])) for w in scene.work if w["launch"]]
    same(f"{label}: trace_processor: flows from launches to their work", [(*r[:4], clean(r[4]), r[5]) for r in got], want)
    got = tp.query("SELECT s.ts, extract_arg(s.arg_set_id, 'launch.grid_size.y'), extract_arg(s.arg_set_id, "
                   "'launch.workgroup_size.x'), extract_arg(s.arg_set_id, 'registers_per_thread'), "
                   "extract_arg(s.arg_set_id, 'kernel_name') FROM gpu_slice s WHERE render_stage_category = 2")
    same(f"{label}: trace_processor: launch configurations of kernels", [(*r[:4], clean(r[4])) for r in got],
         [(str(w["start"]), "2", "128", "40", clean(w["mangled"])) for w in scene.work if w["kind"] == "kernel"])


def check_chrome(scene, path):
    out = os.path.join(TMP, "gpu.json")
    if export(path, "chrome", out) is None:
        return
    with open(out, encoding="utf-8") as file:
        events = json.loads(file.read(), parse_float=str)["traceEvents"]

    def ns(us):
        return int(us.replace(".", ""))

    def title(w):
        return {"memcpy": "Memcpy HtoD (Pinned -> Device)", "memset": "Memset (Device)"}.get(w["kind"], clean(w["title"]))
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    same("chrome: GPU work has the form of torch.profiler", [
        (e["cat"], clean(e["name"]), e["pid"], ns(e["ts"]), ns(e["dur"]), e["args"]["device"], e["args"]["stream"],
         e["args"]["correlation"]) for e in work],
         [({"kernel": "kernel"}.get(w["kind"], "gpu_" + w["kind"]), title(w), w["gpu"], w["start"], w["end"] - w["start"],
           w["device"], w["stream"], w["correlation"]) for w in scene.work])
    lanes = collections.defaultdict(set)
    for e, w in zip(sorted(work, key=lambda e: ns(e["ts"])), sorted(scene.work, key=lambda w: w["start"])):
        lanes[e["pid"], e["tid"]].add((w["pid"], w["context"], w["stream"]))
    ok(all(len(v) == 1 for v in lanes.values()), "chrome: no two streams on one track", lanes)
    begins = {e["id"]: (e["pid"], e["tid"], ns(e["ts"])) for e in events if e["ph"] == "s"}
    spans = {(e["pid"], e["tid"], ns(e["ts"])): e for e in events if e["ph"] == "X"}
    got = [(spans[begins[e["id"]]]["name"], spans[begins[e["id"]]]["cat"], begins[e["id"]], ns(e["ts"]))
           for e in events if e["ph"] == "f"]
    want = [(w["launch"]["function"], "cuda_runtime" if w["launch"]["probed"] or w["launch"]["function"].startswith("cuda") else "cuda_driver",
             (w["launch"]["pid"], w["launch"]["tid"], w["launch"]["start"]), w["start"]) for w in scene.work if w["launch"]]
    same("chrome: flows ac2g from the call to its work", got, want)
    ok(len(begins) == len({w[2] for w in want}), "chrome: a flow begins once a launch")
    library, why = trace_processor.library()
    if not library:
        skip("chrome: trace_processor follows the flows", why)
        return
    with open(out, "rb") as file:
        tp = trace_processor.TraceProcessor(library, file.read())
    got = tp.query("SELECT a.name, a.ts, b.ts, b.category FROM flow f JOIN slice a ON a.id = f.slice_out JOIN slice b ON b.id = f.slice_in")
    same("chrome: trace_processor follows the flows", [tuple(r[:3]) for r in got],
         [(name, str(begin[2]), str(start)) for name, _, begin, start in want])


def check_sqlite(scene, path):
    out = os.path.join(TMP, "gpu.db")
    if export(path, "sqlite", out) is None:
        return
    db = sqlite3.connect(out)
    got = [tuple(clean(v) if isinstance(v, str) else v for v in r) for r in db.execute(
        "SELECT kind, start, end, name, pid, gpu, stream, correlation, grid_y, registers, bytes, copy, queued, launch_function, "
        "launch_tid, launch_start, launched_at, launch_gil, open FROM sonde_gpu_work WHERE NOT only_by_calls")]
    want = []
    for w in scene.work:
        launch = w["launch"] or {}
        want.append((w["kind"], w["start"], w["end"], clean(w["title"]), w["pid"], w["gpu"], w["stream"], w["correlation"],
                     w.get("grid_y"), w.get("registers"), w.get("bytes"), "HtoD" if w["kind"] == "memcpy" else None,
                     w["queued"], launch.get("function"), launch.get("tid"), launch.get("start"),
                     LABEL if launch.get("stack") else None, launch.get("gil"), w.get("flags", 0)))
    same("sqlite: sonde_gpu_work", got, want)
    got = db.execute("SELECT kind, pid, gpu, start, bytes, copy, launch_function FROM sonde_gpu_work WHERE only_by_calls ORDER BY start").fetchall()
    ok(got == [("kernel", 200, None, scene.at(3000), None, None, "cudaLaunchKernel"),
               ("memcpy", 200, None, scene.at(3020), 4096, "DtoH", "cudaMemcpyAsync")], "sqlite: work known only from calls is marked", got)
    got = db.execute("SELECT * FROM sonde_gpus ORDER BY gpu").fetchall()
    ok(got == [(i, MODEL, 80 << 30, 9, 0) for i in (0, 1)], "sqlite: gpus", got)
    names = collections.Counter(clean(r[0]) for r in db.execute("SELECT name FROM sonde_gpu_kernel"))
    ok(names == collections.Counter(clean(w["mangled"]) for w in scene.work if w["kind"] == "kernel"),
       "sqlite: kernels have their names in a table of their own", names)


def check_lines(scene, path):
    out = os.path.join(TMP, "gpu.csv")
    want = collections.Counter(clean(w["mangled"]) for w in scene.work if w["kind"] == "kernel")
    if export(path, "csv", out, "--event", "gpu_kernel") is not None:
        with open(out, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        ok(collections.Counter(from_cell(r["name"]) for r in rows) == want, "csv: kernels by name", rows[:2])
    p = subprocess.run([SONDE, "export", path, "--to", "text"], capture_output=True, text=True)
    lines = [line for line in p.stdout.splitlines() if " gpu_kernel " in line]
    ok(len(lines) == sum(want.values()) and sum(" name=plain_kernel " in line for line in lines) == want["plain_kernel"],
       "text: kernels by name", lines[:2])


def check_many(pb):
    """zstd frames can be read alone also if there are many."""
    path, out = os.path.join(TMP, "many.sonde"), os.path.join(TMP, "many.pftrace.zst")
    subprocess.run([os.path.join(B, "tests", "golden", "make_gpu_trace"), path, "60000"], check=True)
    if pb and export(path, "perfetto", out) is not None:
        with open(out, "rb") as file:
            frames = [perfetto_file.PerfettoFile(pb, x) for x in split_frames(file.read())]
        whole = [k for f in frames for k in f.work]
        ok(len(frames) > 2 and len(whole) == 60000 and not any(f.errors or f.open for f in frames),
           f"60,000 launches: each of {len(frames)} frames can be read alone", [f.errors[:2] for f in frames])
        launches = {n: s.start for f in frames for s in f.slices for n in s.submissions}
        ok(len(launches) == 60000 and all(launches[k.id] < k.start and k.start - launches[k.id] == k.args["queued_ns"] + 6000
                                          for k in whole), "60,000 launches: each with its work")


def check_million():
    """Must run first: a child's peak memory is at least the memory of this process at the fork."""
    path, out = os.path.join(TMP, "many.sonde"), os.path.join(TMP, "many.pftrace.zst")
    subprocess.run([os.path.join(B, "tests", "golden", "make_gpu_trace"), path, "1000000"], check=True)
    began = time.monotonic()
    child = subprocess.Popen([SONDE, "export", path, "--to", "perfetto", "-f", "-o", out])
    _, status, usage = os.wait4(child.pid, 0)
    seconds, peak = time.monotonic() - began, usage.ru_maxrss >> 10
    print(f"# a million launches and their work: {seconds:.1f} s, {os.path.getsize(out) >> 20} MiB .zst, peak memory {peak} MiB")
    ok(not status and peak < 300, "a million launches are exported in bounded memory", peak)


def check_metrics(pb):
    """NVML's metrics are counters of the GPU whose work a shim recorded, although its process has another number for it."""
    golden, path, out = os.path.join(ROOT, "tests/golden"), os.path.join(TMP, "nvml.sonde"), os.path.join(TMP, "nvml.pftrace")
    subprocess.run([os.path.join(B, "tests", "golden", "make_trace"), os.path.join(golden, "nvml.schema.json"),
                    os.path.join(golden, "nvml.events"), path], check=True)
    if not pb or export(path, "perfetto", out) is None:
        return
    with open(out, "rb") as file:
        f = perfetto_file.PerfettoFile(pb, file.read())
    clock, power, second = f.gpu_counter(0, "SM clock"), f.gpu_counter(0, "power"), f.gpu_counter(1, "temperature")
    begin = clock[0][0]
    ok([(t - begin, v) for t, v in clock] == [(0, 1005), (10**9, 1005), (2 * 10**9, 300), (3 * 10**9, 0)] and not f.errors,
       "metrics: each clock until its time", clock)
    ok([v for _, v in power] == [299, 301, 0] and [v for _, v in second] == [31, 0], "metrics: units, and two GPUs", power, second)
    ok([k.gpu for k in f.work] == [0], "metrics: device 1 of the process is the GPU that NVML calls 0", [k.gpu for k in f.work])


def main():
    check_million()
    pb, why = perfetto_file.classes()
    if not pb:
        skip("Perfetto files", why)
    scene = gpu_scene.scene()
    path = scene.write(TMP, "gpu")
    check_perfetto(scene, pb, path, "perfetto")
    check_perfetto(scene, pb, scene.write(TMP, "cut", cut=True), "cut off", cut=True)
    check_chrome(scene, path)
    check_sqlite(scene, path)
    check_lines(scene, path)
    check_many(pb)
    check_metrics(pb)
    done()


main()
