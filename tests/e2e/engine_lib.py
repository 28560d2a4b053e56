# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Checks exports with Perfetto's own engine, trace_processor (tests/lib/trace_processor.py): each slice's duration, each lane's sum
and each wake-up are compared with the events that sonde_trace.py reads and with the reports.
"""
import collections
import os
import subprocess

import trace_processor
from export_lib import SONDE, TMP, clean, export, same
from tap import ok, skip

COMPLAINTS = "SELECT name, value FROM stats WHERE (severity IN ('error', 'data_loss') OR name LIKE '%_skipped') AND value > 0"
WORK = ("gpu_kernel", "gpu_memcpy", "gpu_memset", "gpu_graph")
# enum sched_state as trace_processor shows it; a thread that is switched out runnable was preempted
SHOWN = {0: "R+", 1: "S", 2: "D", 3: "T", 4: "t", 5: "X", 6: "P", 7: "I", 8: "D"}


def integer(cell):
    return 0 if cell == "[NULL]" else int(cell)


class Engine:
    """slices: [(id, ts, dur, depth, parent id, name, category, track id)]; owner: track id -> (pid, tid), (pid, 0) or None"""

    def __init__(self, library, data):
        self.tp = trace_processor.TraceProcessor(library, data)
        self.query = self.tp.query
        self.tracks = {int(i): (name, parent) for i, name, parent in self.query("SELECT id, name, parent_id FROM track")}
        self.direct = {int(i): (int(pid), int(tid)) for i, pid, tid in self.query(
            "SELECT k.id, p.pid, h.tid FROM thread_track k JOIN thread h USING(utid) JOIN process p USING(upid)")}
        self.direct.update({int(i): (int(pid), 0) for i, pid in self.query(
            "SELECT k.id, p.pid FROM process_track k JOIN process p USING(upid)")})
        self.slices = [(int(r[0]), int(r[1]), int(r[2]), int(r[3]), r[4], r[5], r[6], int(r[7])) for r in self.query(
            "SELECT id, ts, dur, depth, parent_id, name, category, track_id FROM slice WHERE track_id NOT IN "
            "(SELECT id FROM gpu_track)")]

    def owner(self, track):
        while track not in self.direct:
            parent = self.tracks[track][1]
            if parent == "[NULL]":
                return None
            track = int(parent)
        return self.direct[track]


def check_complaints(engine, label):
    bad = engine.query(COMPLAINTS)
    ok(not bad, f"{label}: engine: no error and no data loss", bad)


def owner_of(e):
    return (e["pid"], e["tid"]) if e["tid"] or e["pid"] else None


def check_slices(truth, engine, label):
    """Spans and instants: thread, name, start and duration of each."""
    families = set(truth.family.values())
    got = [(engine.owner(s[7]), clean(s[5]), s[1], s[2]) for s in engine.slices
           if s[6] in families and s[5] not in ("released", "releases")]
    want = [(owner_of(e), truth.title(e), (e["start"] if truth.is_span(e) else e["time"]) + truth.ahead,
             e["time"] - e["start"] if truth.is_span(e) else 0) for e in truth.drawn() if e["event"] not in LEFT_OUT]
    launched = {s[0] for s in engine.slices if s[6] == "gpu" and s[5].startswith("cu")}
    got = [g for g, s in zip(got, [s for s in engine.slices if s[6] in families and s[5] not in ("released", "releases")])
           if s[0] not in launched]
    same(f"{label}: engine: every slice's thread, name, start and duration", got, want)
    nested = {s[0]: s for s in engine.slices}
    wrong = [s for s in engine.slices if s[4] != "[NULL]" and not
             nested[int(s[4])][1] <= s[1] <= s[1] + s[2] <= nested[int(s[4])][1] + nested[int(s[4])][2]]
    ok(not wrong, f"{label}: engine: each slice lies within its parent", wrong[:5])


# events of the device, which are drawn differently or not at all
LEFT_OUT = (*WORK, "gpu_call", "gpu_memory", "gpu_device", "gpu_context", "gpu_stream", "gpu_name", "gpu_clock", "gpu_dropped")


def check_released(truth, engine, label):
    """The part of each wait after the lock's release, and the start of the flow that leads to it."""
    waits = [(w, w["pid"], w["dropper"], w["drop_time"]) for w in truth.of("gil_wait")]
    waits += [(w, w["waker_pid"], w["waker_tid"], w["woken"]) for w in truth.of("lock_wait")]
    waits = [(w, pid, tid, time) for w, pid, tid, time in waits if time and tid]
    got = [(engine.owner(s[7]), s[1], s[2]) for s in engine.slices if s[5] == "released"]
    want = []
    for w, _, _, time in waits:
        time = min(max(time, w["start"]), w["time"])
        want.append(((w["pid"], w["tid"]), time + truth.ahead, w["time"] - time))
    same(f"{label}: engine: the part of each wait after the lock's release", got, want)
    flows = engine.query("SELECT count(*) FROM flow f JOIN slice s ON s.id = f.slice_in WHERE s.name = 'released'")
    ok(int(flows[0][0]) == len(waits), f"{label}: engine: a flow to each of {len(waits)} waits", flows)


def traced(truth):
    """(start, end) of the traced time in the engine's clock."""
    first, last = int(truth.trace.head["clocks"]["monotonic"]), max(e["time"] for e in truth.events)
    live = min((e["time"] - e["wall"] for e in truth.of("meta_cost")), default=first)
    stop = max((e.get("stop", 0) for e in truth.of("meta_end")), default=0)
    live = live if first <= live <= last else first
    return live + truth.ahead, (stop if live < stop <= last else last) + truth.ahead


def check_blame(truth, engine, path, label):
    """Each waiter has one lane with all its waits, in disjoint slices. Each holder's total equals that in the folded stacks."""
    live, stop = traced(truth)
    waits, got, holders = collections.Counter(), collections.Counter(), collections.Counter()
    lanes, odd = collections.defaultdict(set), []
    for w in truth.of("gil_wait"):
        waits[w["pid"], w["tid"]] += w["time"] - w["start"]
    for s in engine.slices:
        if engine.tracks[s[7]][0] == "GIL blame":
            got[engine.owner(s[7])] += s[2]
            holders[clean(s[5])] += max(0, min(s[1] + s[2], stop) - max(s[1], live))
            lanes[engine.owner(s[7])].add(s[7])
            if s[2] <= 0 or s[3]:
                odd.append(s)
    waits = +waits if got else waits
    if not truth.frames:
        return
    ok(got == waits, f"{label}: engine: the waits of each of {len(waits)} threads are in its lane of GIL blame",
       [(k, got[k], waits[k]) for k in {*got, *waits} if got[k] != waits[k]][:5])
    ok(not odd and all(len(v) == 1 for v in lanes.values()), f"{label}: engine: one lane per waiter, no empty or nested slice",
       odd[:5])
    if not got:
        return
    p = subprocess.run([SONDE, "export", path, "--to", "folded", "--event", "gil-blame"], capture_output=True, text=True)
    want = collections.Counter()
    for line in p.stdout.splitlines():
        frames, _, ns = line.rpartition(" ")
        for words in ("-- free: woken, not running yet --", "-- holder unknown --"):
            if words in frames.split(";"):
                want[words[3:-3]] += int(ns)
    ok(all(holders[k] == want[k] for k in ("free: woken, not running yet", "holder unknown")),
       f"{label}: engine: the time without a GIL holder equals that of the folded stacks", (holders.most_common(3), want))


def check_sched(truth, engine, label):
    runs, offs = truth.of("sched_run"), truth.of("sched_off")
    if not runs:
        return
    got = [(int(cpu), int(tid), int(ts), int(dur), state) for cpu, tid, ts, dur, state in engine.query(
        "SELECT cpu, tid, ts, dur, end_state FROM sched JOIN thread USING(utid) WHERE tid != 0")]
    # the thread was still on the CPU when tracing ended
    want = [(e["cpu"], e["tid"], e["start"] + truth.ahead, e["time"] - e["start"], SHOWN.get(e["state"], "S")) for e in runs]
    same(f"{label}: engine: every run's CPU, thread, start, duration and end state", got, want)
    got, want = collections.Counter(), collections.Counter()
    for tid, dur in engine.query("SELECT tid, dur FROM thread_state JOIN thread USING(utid) WHERE state = 'Running' AND tid != 0"):
        got[int(tid)] += int(dur)
    for e in runs:
        want[e["tid"]] += e["time"] - e["start"]
    ok(got == want, f"{label}: engine: each thread's time on a CPU", [(k, got[k], want[k]) for k in want if got[k] != want[k]][:5])
    check_wakers(truth, engine, runs, offs, label)


def check_wakers(truth, engine, runs, offs, label):
    """The time of the wake-up and the waker of each sleep that ended in a run."""
    began = {(e["tid"], e["start"]) for e in runs}
    left = {(e["tid"], e["time"]) for e in runs}
    want = []
    for e in offs:
        if e["wake"] and e["state"] and (e["tid"], e["time"]) in began and (e["tid"], e["start"]) in left:
            # a wake-up at the time of the switch is exported 1 ns earlier
            wake = e["wake"] - (e["wake"] == e["time"] > e["start"])
            want.append((e["tid"], wake + truth.ahead, e["time"] - wake, e["waker_tid"] if e["waker"] == 1 else None))
    rows = engine.query("SELECT h.tid, s.ts, s.dur, w.tid, s.irq_context FROM thread_state s JOIN thread h USING(utid) LEFT JOIN thread w "
                        "ON w.utid = s.waker_utid WHERE s.state = 'R'")
    got = {(int(t), int(ts), integer(dur)): (None if w == "[NULL]" else int(w)) for t, ts, dur, w, _ in rows}
    missing = [w for w in want if w[:3] not in got]
    ok(not missing, f"{label}: engine: when each of {len(want)} sleepers was woken", missing[:5])
    wrong = [(w, got.get(w[:3])) for w in want if w[3] and got.get(w[:3]) != w[3]]
    ok(not wrong, f"{label}: engine: the waker of each of {sum(1 for w in want if w[3])} sleepers with one", (len(wrong), wrong[:5]))


def check_work(truth, engine, label):
    """GPU work matches the events within the clock's error, and doesn't overlap in a stream if the events don't beyond that error."""
    events = truth.of(*WORK)
    if not events:
        return
    error = max((e["error"] for e in truth.of("gpu_clock")), default=0)
    # two items of different streams may start at the same time
    got = sorted((int(s), int(c), int(ts), int(ts) + int(dur)) for ts, dur, s, c in engine.query(
        "SELECT ts, dur, extract_arg(arg_set_id, 'stream'), extract_arg(arg_set_id, 'correlation') FROM gpu_slice"))
    want = sorted((e["stream"], e["correlation"], e["start"] + truth.ahead, e["time"] + truth.ahead) for e in events)
    off = [(g, w) for g, w in zip(got, want) if g[:2] != w[:2] or g[3] != w[3] or not 0 <= g[2] - w[2] <= error]
    ok(len(got) == len(want) and not off, f"{label}: engine: {len(want)} items of GPU work have their end and duration, "
       f"within the clock's error", off[:5])
    streams = collections.defaultdict(list)
    for e in events:
        streams[e["pid"], e["device"], e["context"], e["stream"]].append((e["start"], e["time"]))
    overlaps = [a[1] - b[0] for spans in streams.values() for a, b in zip(sorted(spans), sorted(spans)[1:]) if b[0] < a[1]]
    if max(overlaps, default=0) <= error:
        tracks = engine.query("SELECT DISTINCT track_id FROM gpu_slice")
        ok(len(tracks) == len(streams), f"{label}: engine: one track for each of {len(streams)} streams, "
           f"{len(overlaps)} overlaps within the clock's error ({error} ns) are removed", tracks)


def torch_flows(truth):
    """(start of the operator's call, start of the backward node that it made): the innermost call with the node's number, which ends first."""
    made, flows = {}, []
    for e in sorted(truth.of("torch_op", "torch_node"), key=lambda e: e["time"]):
        if e["sequence"] < 0:
            continue
        if e["event"] == "torch_op":
            made.setdefault((e["pid"], e["thread"], e["sequence"]), e["start"])
            continue
        keys = [(e["pid"], thread, e["sequence"]) for thread in (e["made_by"], 0)]
        key = next((k for k in keys if k in made), None)
        if key:
            flows.append((made.pop(key), e["start"]))
    return flows


def check_torch(truth, engine, label, ahead):
    """A flow from each operator's call to the backward node that it made."""
    if not truth.of("torch_node"):
        return
    kinds = {e["start"] + ahead: truth.title(e) for e in truth.of("torch_op", "torch_node") if e["sequence"] >= 0}
    rows = engine.query("SELECT a.ts, a.name, b.ts, b.name FROM flow JOIN slice a ON a.id = slice_out JOIN slice b ON b.id = slice_in "
                        "WHERE b.name != 'released'")
    rows = [(int(begin), name, int(end), node) for begin, name, end, node in rows]
    want = [(begin + ahead, kinds[begin + ahead], end + ahead, kinds[end + ahead]) for begin, end in torch_flows(truth)]
    same(f"{label}: engine: a flow from each call to the backward node that it made", rows, want)


def check_counts(truth, engine, label):
    got = int(engine.query("SELECT count(*) FROM perf_sample")[0][0])
    ok(got == len(truth.of("sample_cpu")), f"{label}: engine: samples ({got})", len(truth.of("sample_cpu")))


def check_perfetto(truth, path, data, library, label):
    engine = Engine(library, data)
    check_complaints(engine, label)
    check_slices(truth, engine, label)
    check_released(truth, engine, label)
    check_blame(truth, engine, path, label)
    check_sched(truth, engine, label)
    check_work(truth, engine, label)
    check_counts(truth, engine, label)
    check_torch(truth, engine, label, truth.ahead)
    return engine


def unpacked(path):
    """The decompressed contents of a .zst, as Debian's build of the engine lacks zstd."""
    return subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout


def check_chrome(truth, path, library, label):
    out = os.path.join(TMP, "engine.json")
    if export(path, "chrome", out) is None:
        return
    with open(out, "rb") as file:
        engine = Engine(library, file.read())
    check_complaints(engine, f"{label}: chrome")
    syncs = {1: "Event Sync", 2: "Stream Wait Event", 3: "Stream Sync", 4: "Context Sync"}
    want = [(syncs.get(e["kind"], "Unknown Sync") if e["event"] == "gpu_sync" else truth.title(e), e["start"], e["time"] - e["start"]) for e in truth.events
            if truth.kind(e).id >> 8 and truth.is_span(e) and e["event"] not in LEFT_OUT]
    categories = {*truth.family.values(), "cuda_runtime", "cuda_driver", "cuda_sync", "cpu_op", "user_annotation"}
    got = [(clean(s[5]), s[1], s[2]) for s in engine.slices if s[6] in categories]
    missing = collections.Counter(want) - collections.Counter(got)
    ok(not missing, f"{label}: chrome: engine: every span's name, start and duration ({len(want)})",
       (sum(missing.values()), list(missing.items())[:5]))
    check_torch(truth, engine, f"{label}: chrome", 0)


def check_all(truth, path, label):
    """Checks all formats that the engine reads. Returns the last engine, or None."""
    library, why = trace_processor.library()
    if not library:
        skip(f"{label}: engine", why)
        return None
    out, engine = os.path.join(TMP, "engine.pftrace"), None
    for name, read in ((out, lambda p: open(p, "rb").read()), (out + ".zst", unpacked)):
        if export(path, "perfetto", name) is not None:
            engine = check_perfetto(truth, path, read(name), library, label + (", compressed" if name != out else ""))
    check_chrome(truth, path, library, label)
    return engine
