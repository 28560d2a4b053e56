#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 waits
"""Programs with doubles of CUDA, recorded with their calls and exported to Perfetto. The official message classes and
trace_processor must read the work that the doubles report. One recording is killed, and one is made without the shim."""
import collections
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["ROOT"], "tests", "probes", "gpu"))
import export_lib
import nsight_reports
import perfetto_file
import shim_lib
import trace_processor
from export_lib import SONDE, TMP, Truth, export, same
from proc_files import child_named
from tap import done, ok, skip
from waiting import state, wait_for

DEMANGLED = {"_Z4gemmILi128EEvPfS0_S0_i": "void gemm<128>(float*, float*, float*, int)", "_Z7softmaxPfi": "softmax(float*, int)",
             "_Z10layer_normPfS_i": "layer_norm(float*, float*, int)", "_Z4adamPfS_S_f": "adam(float*, float*, float*, float)"}
COPIES = {1: "[CUDA memcpy Host-to-Device]", 2: "[CUDA memcpy Device-to-Host]", 10: "[CUDA memcpy Peer-to-Peer]"}
STAGES = {"kernel": "kernel", "copy": "memcpy", "set": "memset", "graph": "graph"}
VERSION = None  # the CUDA version of the doubles


class Run:
    """A recording of the doubles, its export, and the work that they report."""

    def __init__(self, name, *args, families="proc,cuda,gpu", options=(), kill=False, command=None):
        self.path, self.truth_path = os.path.join(TMP, name + ".sonde"), os.path.join(TMP, name + ".truth")
        if os.path.exists(self.truth_path):
            os.unlink(self.truth_path)
        environment = dict(os.environ, FAKE_CUDA="devices=2", FAKE_CUPTI="ppm=50,jitter_ns=500",
                           FAKE_CUDA_TRUTH=self.truth_path)
        p = subprocess.Popen([SONDE, "record", "-f", "-o", self.path, "-t", families, *options, "--",
                              *(command or [shim_lib.training(VERSION)]), *args], env=environment, stderr=subprocess.PIPE,
                             text=True)
        if kill:
            wait_for_work(self.path, self.truth_path)
            program = child_named(p.pid, "fake_training")
            p.send_signal(signal.SIGKILL)
        self.errors = p.communicate(timeout=100)[1]
        if kill:
            wait_for(lambda: state(program) in (None, "Z"))
        ok(p.returncode == (-9 if kill else 0), f"{name}: recorded", self.errors)
        self.did = shim_lib.read_truth(self.truth_path)
        self.trace = Truth(self.path)
        self.error = max((e["error"] for e in self.trace.of("gpu_clock")), default=0) + 3

    def work(self, traced=True):
        """{(stage, title, device, context, stream, correlation): [work items in order]}"""
        out = collections.defaultdict(list)
        for kind, stage in STAGES.items():
            for w in self.did[kind]:
                # the nodes of a graph that is recorded as a whole are not recorded
                if (traced and not w["traced"]) or (w["graph"] and kind != "graph"):
                    continue
                title = DEMANGLED[w["name"]] if kind == "kernel" else COPIES[w["kind"]] if kind == "copy" else \
                    "[CUDA memset]" if kind == "set" else "[CUDA graph]"
                out[stage, title, w["device"], w["context"], w["stream"], w["correlation"]].append(w)
        return out


def wait_for_work(path, truth):
    """Waits until the trace has some of the program's work."""
    wait_for(lambda: os.path.exists(truth))
    before = os.path.getsize(path)
    wait_for(lambda: os.path.getsize(path) > before + 30000)


def key_of(k):
    return k.stage, k.name, k.args["device"], None, k.args["stream"], k.args["correlation"]


def check_work(run, f, label, whole=True):
    """Each work item is exported once, with its times and stream."""
    want = {(*key[:3], None, *key[4:]): rows for key, rows in run.work(whole).items()}
    got = collections.Counter(map(key_of, f.work))
    counts = collections.Counter({k: len(v) for k, v in want.items()})
    extra, missing = got - counts, counts - got
    ok(not extra and (not missing or not whole) and f.work, f"{label}: {len(f.work)} kernels, copies and sets, each once",
       f"surplus: {list(extra)[:3]}\nmissing: {list(missing)[:3]}")
    worst, shapes = 0, []
    for k in f.work:
        twin = want[key_of(k)][0] if want.get(key_of(k)) else None
        if not twin:
            continue
        worst = max(worst, abs(k.start - run.trace.ahead - twin["start"]), abs(k.end - run.trace.ahead - twin["end"]))
        shape = [",".join(map(str, k.grid)), ",".join(map(str, k.block))]
        if k.stage == "kernel" and (shape != [twin["grid"], twin["block"]] or not k.kernel or k.kernel[0] != twin["name"]):
            shapes.append((shape, k.kernel, twin))
        elif k.stage in ("memcpy", "memset") and (k.args["bytes"] != twin["bytes"] or k.pid != twin["pid"]):
            shapes.append((k.args, twin))
    ok(worst <= run.error, f"{label}: times differ by at most {worst} ns, the clock's error is {run.error} ns")
    ok(not shapes, f"{label}: names, shapes, bytes", shapes[:3])
    queues = {(k.gpu, k.queue) for k in f.work}
    ok(queues == {(w["device"], f"fake_training {w['pid']}: stream {w['stream']}") for rows in want.values() for w in rows} or
       not whole, f"{label}: a track for each of {len(queues)} streams", queues)
    ok(not f.errors, f"{label}: every reference is to an earlier packet", f.errors[:5])


def check_launches(run, f, label, probed, whole=True):
    """A flow leads to each work item from the call, on the same thread, that contains the driver call with its correlation id."""
    # a call of libcudart after the call of libcuda within it, which has its id: CUPTI reports the outer one
    calls = {c["correlation"]: c for c in shim_lib.true_events(run.did, "call")}
    launches = {n: s for s in f.slices for n in s.submissions}
    wrong, alone = [], 0
    for k in f.work:
        s, c = launches.get(k.id), calls.get(k.args["correlation"])
        if not s:
            alone += 1
            continue
        begin, end = c["start"] + run.trace.ahead, c["end"] + run.trace.ahead
        if f.thread_of(s.track) != (c["pid"], c["tid"]) or s.start > begin + run.error or s.end < end - run.error or \
                s.name.startswith("cuda") != (probed or bool(c["runtime"])) or k.args["launched_by"] != s.name or \
                k.args["launching_thread"] != f"fake_training {c['tid']}":
            wrong.append((s.name, f.thread_of(s.track), s.start - begin, s.end - end, k.args, c))
    ok(not wrong and (not alone or not whole), f"{label}: {len(f.work) - alone} work items have a flow from the call that launched them",
       (alone, wrong[:3]))


def check_processor(run, f, path, label):
    library, why = trace_processor.library()
    if not library:
        skip(f"{label}: trace_processor", why)
        return
    with open(path, "rb") as file:
        tp = trace_processor.TraceProcessor(library, file.read())
    bad = tp.query("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0")
    ok(not bad, f"{label}: trace_processor loads it without complaint", bad)
    got = tp.query("SELECT s.ts, s.dur, s.name, extract_arg(s.arg_set_id, 'correlation'), p.pid FROM gpu_slice s JOIN process p USING(upid)")
    same(f"{label}: trace_processor: gpu_slice", map(tuple, got),
         [(str(k.start), str(k.end - k.start), k.name, str(k.args["correlation"]), str(k.pid)) for k in f.work])
    launches = {n: s for s in f.slices for n in s.submissions}
    got = tp.query("SELECT a.ts, a.name, h.tid, b.ts FROM flow f JOIN slice a ON a.id = f.slice_out JOIN gpu_slice b ON b.id = "
                   "f.slice_in JOIN thread_track t ON t.id = a.track_id JOIN thread h USING(utid)")
    want = [(str(s.start), s.name, str(f.thread_of(s.track)[1]), str(k.start)) for k in f.work
            for s in [launches.get(k.id)] if s]
    same(f"{label}: trace_processor: flows", map(tuple, got), want)


def read(pb, path):
    out = path[:-6] + ".pftrace"
    if export(path, "perfetto", out) is None:
        return None, out
    with open(out, "rb") as file:
        return perfetto_file.PerfettoFile(pb, file.read()), out


def check_counters(run, f, label):
    for gpu in 0, 1:
        work = sorted((w["start"], w["end"]) for rows in run.work().values() for w in rows if w["device"] == gpu)
        busy, last = 0, 0
        for start, end in work:
            busy += max(0, end - max(start, last))
            last = max(last, end)
        values = f.gpu_counter(gpu, "busy")
        got = sum(v / 100 * (b[0] - t) for (t, v), b in zip(values, values[1:]))
        # each end of an item is off by at most the clock's error
        ok(abs(got - busy) <= 2 * run.error * len(work), f"{label}: GPU {gpu} was busy for {busy} ns", got)
    # the event of a release does not contain the block's size
    events, sizes = [], {}
    for m in sorted((m for m in run.did["memory"] if m["traced"]), key=lambda m: m["start"]):
        sizes[m["address"]] = m["bytes"] or sizes[m["address"]]
        events.append((m["start"], sizes[m["address"]] if m["kind"] == 1 else -sizes[m["address"]], m["device"]))
    for gpu in 0, 1:
        want = [sum(b for _, b, d in events[:i + 1] if d == gpu) for i, e in enumerate(events) if e[2] == gpu]
        got = f.gpu_counter(gpu, "memory")
        ok([v for _, v in got[:-1]] == want, f"{label}: GPU {gpu}'s memory ({len(want)} changes)", (got, want))


def check_nsight(run, probed):
    """The figures of reports of `nsys stats` by SQL are those of sonde's reports."""
    out = run.path[:-6] + ".sqlite"
    if export(run.path, "sqlite", out) is None:
        return
    db = nsight_reports.Database(out, run.path)
    db.kernels()
    db.trace_rows()
    db.memory()
    if probed:
        db.calls()


def check_lines(pb):
    """Checks the Python line and stack of each launch."""
    source = os.path.join(export_lib.ROOT, "tests", "workloads", "gpu_lines.py")
    library = os.path.join(shim_lib.DOUBLES, VERSION, f"libcudart.so.{VERSION}")
    with open(source, encoding="utf-8") as file:
        lines = file.read().splitlines()
    run = Run("lines", "100", options=["--cuda=stacks"], command=["/usr/bin/python3", source, library])
    f, _ = read(pb, run.path)
    if not f:
        return
    at = {DEMANGLED[kernel]: (1 + next(i for i, line in enumerate(lines) if f"({name}_kernel, Dim3" in line), name)
          for kernel, name in (("_Z4gemmILi128EEvPfS0_S0_i", "gemm"), ("_Z7softmaxPfi", "softmax"))}
    launches = {n: s for s in f.slices for n in s.submissions}
    wrong = []
    for k in f.work:
        line, name = at[k.name]
        frames = [(function, number) for function, _, number in launches[k.id].callstack]
        if k.args.get("launched_at") != f"gpu_lines.py:{line} {name}" or k.args.get("gil_at_launch") != "not held" or \
                frames[-1:] != [(name, line)] or "train" not in [function for function, _ in frames]:
            wrong.append((k.name, k.args, frames))
    ok(len(f.work) == 400 and not wrong, f"Python: {len(f.work)} kernels have the lines that launched them", wrong[:3])


def main():
    global VERSION
    if os.geteuid():
        print("# needs root")
        sys.exit(77)
    VERSION = shim_lib.versions()[-1]
    pb, why = perfetto_file.classes()
    if not pb:
        skip("Perfetto files", why)
        done()
    whole = ["-d", "2", "-t", "2", "-n", "60", "-p", "2000", "-g"]
    for label, families, probed in (("with calls", "proc,cuda,gpu", True), ("CUPTI alone", "proc,gpu", False)):
        run = Run(label.replace(" ", "-"), *whole, families=families)
        f, path = read(pb, run.path)
        if not f:
            continue
        check_work(run, f, label)
        check_launches(run, f, label, probed)
        check_processor(run, f, path, label)
        check_counters(run, f, label)
        check_nsight(run, probed)
    run = Run("killed", "-d", "2", "-t", "2", "-n", "1500", "-p", "2000", kill=True)
    f, path = read(pb, run.path)
    if f:
        check_work(run, f, "killed", whole=False)
        check_launches(run, f, "killed", True, whole=False)
        check_processor(run, f, path, "killed")
        ok(any("cut off" in s.name for s in f.slices), "killed: an instant marks the cut")
    check_lines(pb)
    run = Run("no-shim", *whole, families="proc,cuda")
    f, _ = read(pb, run.path)
    if f:
        marks = [s.name for s in f.slices if f.tracks[s.track].name == "GPU work without device times"]
        ok(not f.work and len(marks) == 1 and not f.gpu_counter(0, "busy"), "no shim: no device's track, and an instant that says why", marks)
    done()


main()
