# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Shared by the tests of exports: compares each export format of a trace with the trace as tests/lib/sonde_trace.py reads it."""
import collections
import csv
import decimal
import json
import os
import re
import signal
import sqlite3
import subprocess

ROOT, SONDE, TMP = os.environ["ROOT"], os.environ["SONDE"], os.environ["TMPDIR"]
B = os.environ["B"]
import perfetto_file
from sonde_cli import tables
from sonde_trace import Trace
from tap import ok

OPEN, NO_DURATION, BLIND = 1, 4, 8
FLAGS = {1: "not returned", 2: "return not seen", 4: "only entry seen", 8: "began before tracing"}
INVENTORY = ("proc_task", "proc_image", "proc_map", "proc_rank", "proc_name", "proc_python", "gil_owner", "torch_operator", "torch_class", "torch_cost")
COMMON = ("time", "pid", "tid", "id", "probe", "cpu", "flags")
STATES = {0: 256, 1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 6: 64, 7: 128, 8: 2}  # enum sched_state -> the kernel's prev_state


def export(path, fmt, out, *args):
    """Returns the text of standard error; None: the export failed."""
    p = subprocess.run([SONDE, "export", path, "--to", fmt, "-f", "-o", out, *args], capture_output=True, text=True)
    return p.stderr if ok(p.returncode == 0, f"export to {fmt}", p.stderr) else None


def clean(data):
    """Untrusted bytes as text. A run of invalid bytes becomes one replacement character, because programs differ in how many they make of it."""
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    while "\ufffd\ufffd" in text:
        text = text.replace("\ufffd\ufffd", "\ufffd")
    return text


class Truth:
    """The contents of a trace, with names for threads, functions and events as exports must show them."""

    def __init__(self, path):
        self.file, self.trace = path, Trace(path)
        self.family = {f["id"]: f["name"] for f in self.trace.schema["families"]}
        self.events = list(self.trace.events())
        self.probes = {e["number"]: e["name_text"] for e in self.events if e["event"] == "meta_probe"}
        clocks = self.trace.head.get("clocks", {})
        self.ahead = int(clocks.get("boottime", 0)) - int(clocks.get("monotonic", 0))
        self.names = self._names()
        self.codes = {e["code"]: e for e in self.of("meta_code")}
        self.frames = {e["frame"]: e for e in self.of("meta_frame")}

    def label(self, stack):
        """The label of a stack's innermost frame, in the form that docs/exports.md defines."""
        f = self.frames.get(stack)
        if not f or f["kind"] == 4:
            return "[cut]" if f else "?"
        c = self.codes.get(f["code"], {"name_text": "", "file_text": ""})
        file = c["file_text"].rpartition("/")[2]
        name = c["name_text"] or (f"{f['offset']:#x}" if file and f["kind"] != 1 else "[unknown]")
        if f["kind"] == 1 and file:
            return f"{file}:{f['line']} {name}" if f["line"] else f"{file} {name}"
        return f"{name} (kernel)" if f["kind"] == 3 else f"{name} ({file})" if file else name

    def _names(self):
        latest = {}
        for e in self.events:
            who = (e["child_pid"], e["child_tid"]) if e["event"] == "proc_fork" else (e["pid"], e["tid"])
            if e["event"] in ("proc_task", "proc_fork", "proc_exec", "proc_rename") and \
                    e["comm"] and e["time"] >= latest.get(who, (0,))[0]:
                latest[who] = (e["time"], e["comm"].rstrip("\0"))
        return {who: clean(name) for who, (_, name) in latest.items()}

    def titles(self):
        """The processes' names in reports"""
        return {r["pid"]: clean(r["name"].strip()) for r in tables("report", self.file, "processes")["processes"]}

    @staticmethod
    def thread(e):
        return (e["pid"], e["tid"]) if e["tid"] else None

    def kind(self, e):
        return self.trace.by_name[e["event"]]

    def is_span(self, e):
        return self.kind(e).is_span and not e["flags"] & NO_DURATION

    def title(self, e):
        if e["event"] in ("torch_op", "torch_node", "torch_range"):
            return self.torch_title(e)
        number = next((f for f in self.kind(e).fields if f.name == "nr" and f.names), None)
        if number and self.kind(e).is_call:
            return number.names.get(e["nr"], e["event"])
        return clean(self.probes.get(e["probe"], e["event"])) if self.kind(e).is_call else e["event"]

    def torch_title(self, e):
        """The name that torch.profiler prints: of an operator without the overload, of a generated class without its namespaces."""
        if e["event"] == "torch_range":
            return clean(e["name"].rstrip("\0"))
        if e["event"] == "torch_node":
            names = {c["vtable"]: c["name"].rstrip("\0") for c in self.of("torch_class") if c["pid"] == e["pid"]}
            parts, rest = [], names[e["vtable"]].lstrip("N")
            while found := re.match(r"(\d+)(.*)", rest):
                parts.append(found[2][:int(found[1])])
                rest = found[2][int(found[1]):]
            return parts[-1] if "generated" in parts else "::".join(parts)
        if e["handle"]:
            return next(o["name"].rstrip("\0") for o in self.of("torch_operator") if (o["pid"], o["handle"]) == (e["pid"], e["handle"]))
        return self.probes[e["probe"]].split(".")[0]

    def of(self, *kinds):
        return [e for e in self.events if e["event"] in kinds]

    def drawn(self):
        """Events that are shown on tracks of threads: all except threads' runs and waits, samples and the trace's metadata."""
        return [e for e in self.events if self.kind(e).id >> 8 and
                e["event"] not in (*INVENTORY, "sample_cpu", "sched_run", "sched_off")]

    def path(self, stack):
        """(function, file, line) of the stack's frames, outermost first"""
        out = []
        while stack in self.frames:
            f = self.frames[stack]
            c = self.codes.get(f["code"], {"name_text": "", "file_text": ""})
            name = c["name_text"] or {1: "[unknown]", 4: "[cut]"}.get(f["kind"], "")
            out.append((clean(name), clean(c["file_text"] if f["kind"] == 1 else ""), f["line"]))
            stack = f["caller"]
        return tuple(out[::-1])

    def stack(self, e):
        """The first of the event's stacks that is in the trace, or 0"""
        return next((e[f.name] for f in self.kind(e).fields if f.unit == "stack" and e[f.name] in self.frames), 0)

    def fields(self, e):
        """Yields (field, printed value): the name of an enum value, the text of a string, or the number."""
        for f in self.kind(e).fields:
            if f.name in COMMON or (f.name == "start" and self.kind(e).is_span):
                continue
            v = e[f.name]
            if f.unit == "string":
                v = clean(e[f.name + "_text"])
            elif f.is_text:
                v = clean(v.split("\0")[0])
            elif f.names and f.names.get(v):
                v = f.names[v]
            yield f, v

    def arguments(self, e, ahead=0):
        """The same as a viewer's arguments, which omit empty and unknown values."""
        out = {"cpu": e["cpu"]}
        for f, v in self.fields(e):
            if f.unit == "errno" and isinstance(v, int) and v < 0:
                import errno
                v = errno.errorcode.get(-v, v)
            elif f.unit == "signal" and v:
                v = signal.Signals(v).name[3:]
            elif f.unit == "moment" and v:
                v += ahead
            elif f.unit == "stack" and v:
                v = self.label(v)
            if v == "" or (v == 0 and f.unit in ("stack", "task", "moment", "string", "hex")):
                continue
            out[f.name] = v
        out.update({words: True for bit, words in FLAGS.items() if e["flags"] & bit})
        return out


def frozen(args):
    return tuple(sorted((k, clean(v) if isinstance(v, str) else v) for k, v in args.items()))


def same(name, got, want):
    got, want = collections.Counter(got), collections.Counter(want)
    n = sum(want.values())
    return ok(got == want, f"{name} ({n})", f"surplus: {list((got - want).items())[:5]}\nmissing: "
              f"{list((want - got).items())[:5]}")


def check_slices(truth, f, label):
    own = [s for s in f.slices if s.category and s.category != "finding" and s.name not in ("released", "releases")]
    same(f"{label}: spans: thread, name, times, arguments",
         [(f.thread_of(s.track), s.name, s.category, s.start, s.end, frozen(s.args)) for s in own if not s.instant],
         [(truth.thread(e), truth.title(e), truth.family[truth.kind(e).id >> 8], e["start"] + truth.ahead,
           e["time"] + truth.ahead, frozen(truth.arguments(e, truth.ahead)))
          for e in truth.drawn() if truth.is_span(e)])
    same(f"{label}: instants: thread, name, times, arguments",
         [(f.thread_of(s.track), s.name, s.start, frozen(s.args)) for s in own if s.instant],
         [(truth.thread(e), truth.title(e), e["time"] + truth.ahead, frozen(truth.arguments(e, truth.ahead)))
          for e in truth.drawn() if not truth.is_span(e)])
    ok(not f.errors and not f.open, f"{label}: every begin has an end, every name and track is defined",
       [f.errors[:5], len(f.open)])


def check_findings(path, f, label):
    """The track has what the report says first, in that order."""
    report = subprocess.run([SONDE, "report", path, "summary", "--format", "json"], capture_output=True, text=True)
    want = [x["text"].split(" Next: `")[0] for x in json.loads(report.stdout)["findings"] if "kind" in x]
    got = sorted((s for s in f.slices if s.category == "finding"), key=lambda s: float(dict(frozen(s.args))["rank"]))
    ok([s.name for s in got] == want, f"{label}: findings ({len(want)})", [[s.name for s in got], want])


def check_stacks(truth, f, label):
    def known(callstack):
        return tuple((clean(name), clean(file), line) for name, file, line in callstack)
    same(f"{label}: samples: time, thread, stack", [(*s[:4], known(s[4])) for s in f.samples],
         [(e["time"] + truth.ahead, e["cpu"], e["pid"], e["tid"], truth.path(e["stack"])) for e in truth.of("sample_cpu")])
    same(f"{label}: stacks of slices", [(f.thread_of(s.track), s.name, s.start, known(s.callstack)) for s in f.slices if s.callstack and s.category],
         [(truth.thread(e), truth.title(e), e["start" if truth.is_span(e) else "time"] + truth.ahead, truth.path(truth.stack(e)))
          for e in truth.drawn() if truth.stack(e)])


def check_flows(truth, f, label):
    sources = {flow: (*f.thread_of(s.track), s.start) for s in f.slices for flow in s.flows if s.name == "releases"}
    got = [(sources.get(flow), f.thread_of(s.track), s.start, s.end)
           for s in f.slices for flow in s.flows_end if s.name == "released"]
    waits = [(w, w["pid"], w["dropper"], w["drop_time"]) for w in truth.of("gil_wait")]
    waits += [(w, w["waker_pid"], w["waker_tid"], w["woken"]) for w in truth.of("lock_wait")]
    want = [((pid, tid, time + truth.ahead), (w["pid"], w["tid"]),
             min(max(time, w["start"]), w["time"]) + truth.ahead, w["time"] + truth.ahead)
            for w, pid, tid, time in waits if time and tid]
    same(f"{label}: flows from the releasing thread to the waiter", got, want)
    same(f"{label}: every flow has a begin and an end", sources.values(), [w[0] for w in want])


def check_sched(truth, f, label):
    runs = truth.of("sched_run")
    same(f"{label}: runs of each CPU: thread, times, state", f.runs(),
         [(e["cpu"], e["tid"], e["start"] + truth.ahead, e["time"] + truth.ahead, STATES.get(e["state"], 1))
          for e in runs])
    irq = {2: 0x10, 3: 0x08}
    same(f"{label}: wake-ups: time, thread, CPU, waker", f.wakings,
         [(e["wake"] + truth.ahead - (e["wake"] == e["time"] > e["start"]), e["tid"], e["cpu"], e["waker_tid"], irq.get(e["waker"], 0))
          for e in truth.of("sched_off") if e["wake"] and e["state"]])
    named = {tid: name for rows in f.switches.values() for _, _, _, tid, name in rows if tid}
    ok(named == {e["tid"]: truth.names.get((e["pid"], e["tid"]), truth.names.get((e["pid"], e["pid"]), ""))
                 for e in runs}, f"{label}: events of the process are exported", named)


def check_names(truth, f, label):
    threads = {(t.thread.pid, t.thread.tid): t.thread.thread_name for t in f.tracks.values() if t.HasField("thread")}
    wrong = [(who, clean(name), truth.names.get(who)) for who, name in threads.items()
             if clean(name) != truth.names.get(who, truth.names.get((who[0], who[0]), ""))]
    ok(not wrong, f"{label}: names of threads ({len(threads)})", wrong)
    commands = {}
    for e in sorted(truth.of("proc_image"), key=lambda e: e["time"]):
        commands[e["pid"]] = [clean(e["command_text"])] if e["command_text"] else []
    processes = [t.process for t in f.tracks.values() if t.HasField("process")]
    titles = truth.titles()
    wrong = [p for p in processes if clean(p.process_name) != titles.get(p.pid, "") or
             list(map(clean, p.cmdline)) != commands.get(p.pid, [])]
    ok(processes and not wrong or not threads, f"{label}: names and command lines of processes ({len(processes)})",
       wrong)


def waiters_over_time(waits, ahead):
    changes = collections.Counter()
    for w in waits:
        changes[w["start"] + ahead] += 1
        changes[w["time"] + ahead] -= 1
    n, out = 0, []
    for time in sorted(changes):
        n += changes[time]
        out.append((time, n))
    return out


def check_counters(truth, f, label):
    by_gil = collections.defaultdict(list)
    for w in truth.of("gil_wait"):
        by_gil[w["pid"], w["gil"]].append(w)
    for (pid, gil), waits in by_gil.items():
        # two changes at one time that cancel out may be omitted
        want = waiters_over_time(waits, truth.ahead)
        found = f.counter("GIL waiters", pid)
        ok(want in found, f"{label}: waiters for GIL {gil:#x} of {pid} ({len(want)})", [want[:4], found[0][:4]])
    costs = truth.of("meta_cost")
    for name, value in (("sonde: CPU time", lambda e: e["user"] + e["system"] + e.get("children", 0)), ("sonde: peak memory",
                        lambda e: e["memory"]), ("sonde: trace file", lambda e: e["written"])):
        got = f.counter(name)
        ok((got[0] if got else []) == [(e["time"] + truth.ahead, value(e)) for e in costs],
           f"{label}: counter {name} ({len(costs)})", got)
    losses = [e for e in truth.of("meta_loss") if e["reason"] != BLIND]
    got = f.counter("lost records")
    ok((got[0][-1][1] if got else 0) == sum(e["count"] for e in losses), f"{label}: counter of lost records", got)


def check_losses(truth, f, label):
    track = {uuid for uuid, t in f.tracks.items() if t.name == "losses"}
    marks = [s for s in f.slices if s.track in track]
    same(f"{label}: losses are instants", [(s.start, s.end) for s in marks if "cut off" not in s.name and
                                       "damaged" not in s.name and not s.name.startswith("sonde: ")],
         [(e["first"] + truth.ahead, e["last"] + truth.ahead) for e in truth.of("meta_loss")])
    cut = [s.name for s in marks if "cut off" in s.name]
    ok(len(cut) == (not truth.of("meta_end")), f"{label}: {'an instant at the cut' if cut else 'not cut off'}",
       cut)


def check_perfetto(truth, pb, data, label):
    f = perfetto_file.PerfettoFile(pb, data)
    check_slices(truth, f, label)
    check_findings(truth.file, f, label)
    check_flows(truth, f, label)
    check_stacks(truth, f, label)
    check_sched(truth, f, label)
    check_names(truth, f, label)
    check_counters(truth, f, label)
    check_losses(truth, f, label)
    ok(all(c[6] - c[3] == truth.ahead for c in f.clocks), f"{label}: clocks ({len(f.clocks)})", f.clocks)
    return f


def check_zst(path, plain, pb, truth, label):
    """The compressed file has the same packets, and each zstd frame can be decompressed alone."""
    packed = plain + ".zst"
    if export(path, "perfetto", packed) is None:
        return
    with open(packed, "rb") as file:
        data = file.read()
    frames = split_frames(data)
    whole = b"".join(frames)
    check_perfetto(truth, pb, whole, f"{label}, compressed")
    alone = [perfetto_file.PerfettoFile(pb, frame) for frame in frames]
    # both ends of a slice are written at once, so that the order of packets is that of the plain file
    errors = [e for f in alone for e in f.errors + f.open]
    ok(not errors and sum(len(f.slices) for f in alone) >= len(truth.drawn()),
       f"{label}: each of {len(frames)} frames can be read alone", errors[:5])


def split_frames(data):
    import zstandard
    frames = []
    while data:
        d = zstandard.ZstdDecompressor().decompressobj()
        frames.append(d.decompress(data))
        data = d.unused_data
    return frames


def training_steps(truth):
    """From the end of an optimizer's step() to the end of the next, of programs with one optimizer in a thread"""
    ends = {}
    for e in truth.events:
        if truth.kind(e).name == "torch_range" and truth.title(e).startswith("Optimizer.step#"):
            ends.setdefault((e["pid"], e["tid"]), []).append(e["time"])
    return [(*task, f"ProfilerStep#{n}", a, b - a) for task, times in ends.items()
            for n, (a, b) in enumerate(zip(sorted(times), sorted(times)[1:]), 1)]


def check_chrome(truth, path, label):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]

    def ns(us):  # durations have more digits than ns, so that the double of an end is not above that of the span around
        return round(decimal.Decimal(us) * 1000)

    with open(path, encoding="utf-8") as file:
        exact = json.loads(file.read(), parse_float=str)["traceEvents"]
    # extra tracks for overlapping spans of one thread
    lanes = {e["tid"]: e["args"]["thread"] for e in exact if e["ph"] == "M" and "thread" in e["args"]}
    got = [(e["pid"], lanes.get(e["tid"], e["tid"]), clean(e["name"]), ns(e["ts"]), ns(e["dur"])) for e in exact if e["ph"] == "X" and
           e["cat"] != "core"]
    same(f"{label}: chrome: spans", got,
         [(e["pid"], e["tid"], truth.title(e), e["start"], e["time"] - e["start"])
          for e in truth.events if truth.kind(e).id >> 8 and truth.is_span(e)] + training_steps(truth))
    names = {(e["pid"], e["tid"]): clean(e["args"]["name"]) for e in events
             if e["ph"] == "M" and e["name"] == "thread_name" and "thread" not in e["args"]}
    wrong = {k: v for k, v in names.items() if v != truth.names.get(k, truth.names.get((k[0], k[0])))}
    ok(not wrong and (names or not truth.names), f"{label}: chrome: names ({len(names)})", wrong)


INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


def escape(found):
    c = found.group()
    # is shown like an invalid byte, see from_cell()
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(c) or (
        f"\\x{ord(c):02x}" if ord(c) < 0x80 else "\ufffd" if ord(c) < 0x100 else f"\\u{{{ord(c):04x}}}")


def from_cell(text):
    """CSV escapes an invalid byte as \\xff; the expected texts have a replacement character."""
    return clean(re.sub(r"\\x[89a-f][0-9a-f]", "\ufffd", text))


def cell(text):
    """The text as a CSV cell: no terminal interprets it, and no spreadsheet takes it as a formula."""
    text = INVISIBLE.sub(escape, text)
    return "'" + text if text[:1] in tuple("=+-@\t\r") else text


def check_csv(truth, trace, kind, label):
    out = os.path.join(TMP, "out.csv")
    if export(trace, "csv", out, "--event", kind) is None:
        return
    with open(out, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if "torch_name" in rows[0]:
        at = rows[0].index("torch_name")
        ok(all(r[at] and not r[at].startswith(("_Z", "N5torch")) for r in rows[1:]), f"{label}: csv: {kind} has demangled names", rows[:3])
        rows = [r[:at] + r[at + 1:] for r in rows]
    fields = truth.trace.by_name[kind].fields
    ok([h.split(" ")[0] for h in rows[0]] == [f.name for f in fields] + ["probe_name"] +
       [f.name + "_name" for f in fields if f.unit == "stack"], f"{label}: csv: header of {kind}", rows[0])

    def cells(e):
        words = {f.name: v for f, v in truth.fields(e)}
        for f in fields:
            v = words.get(f.name, e[f.name])
            yield hex(v) if f.unit == "hex" else cell(v) if isinstance(v, str) else str(v)
        yield cell(truth.probes.get(e["probe"], ""))
        yield from (cell(truth.label(e[f.name])) if e[f.name] else "" for f in fields if f.unit == "stack")
    got = [tuple(from_cell(c) for c in r) for r in rows[1:] if not any(f.type == "float" for f in fields)]
    same(f"{label}: csv: {kind}", got, [tuple(map(clean, cells(e))) for e in truth.of(kind)] if got else [])
    times = [int(r[0]) for r in rows[1:]]
    ok(times == sorted(times) and len(times) == len(truth.of(kind)), f"{label}: csv: {kind} in order of time")


def signed(v):
    return v - (1 << 64) if isinstance(v, int) and v >= 1 << 63 else v


def check_sqlite(truth, path, label):
    db = sqlite3.connect(path)
    for kind, n in sorted(truth.trace.counts().items()):
        columns = [r[1] for r in db.execute(f'PRAGMA table_info("sonde_{kind}")')]
        got = [tuple(clean(v) if isinstance(v, str) else v for v in row) for row in db.execute(f'SELECT * FROM "sonde_{kind}"')]
        if columns[-2] == "torch_name":
            ok(all(row[-2] and not row[-2].startswith(("_Z", "N5torch")) for row in got), f"{label}: sqlite: {kind} has demangled names", got[:3])
            got = [(*row[:-2], row[-1]) for row in got]
        want = []
        for e in truth.of(kind):
            words = {f.name: v for f, v in truth.fields(e)}
            # an enum value without a name is stored as the text of its number
            row = [str(v) if f.names else signed(v) for f in truth.kind(e).fields for v in [words.get(f.name, e[f.name])]]
            want.append((*row, clean(truth.probes[e["probe"]]) if e["probe"] in truth.probes else None))
        ok(got == want and columns[-1] == "probe_name", f"{label}: sqlite: {kind} ({n})",
           [(g, w) for g, w in zip(got, want) if g != w][:3])
    got = {i: (c or 0, clean(name)) for i, c, name in db.execute("SELECT id, caller, label FROM sonde_frames")}
    ok(got == {i: (f["caller"], clean(truth.label(i))) for i, f in truth.frames.items()}, f"{label}: sqlite: frames")
    names = {(p, t): clean(n) for p, t, n in db.execute("SELECT pid, tid, name FROM sonde_threads") if n}
    wrong = {k: v for k, v in names.items() if v != truth.names.get(k, truth.names.get((k[0], k[0])))}
    ok(not wrong, f"{label}: sqlite: names of {len(names)} threads", wrong)
    lost = db.execute("SELECT coalesce(sum(count), 0) FROM sonde_losses").fetchone()[0]
    ok(lost == sum(e["count"] for e in truth.of("meta_loss")), f"{label}: sqlite: losses", lost)
    ok(db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"{label}: sqlite: the integrity check passes")
    db.close()


def check_all(path, pb, label, kinds=()):
    """Checks all formats of one trace."""
    truth = Truth(path)
    out = os.path.join(TMP, "out")
    if pb and export(path, "perfetto", out + ".pftrace") is not None:
        with open(out + ".pftrace", "rb") as file:
            check_perfetto(truth, pb, file.read(), label)
        check_zst(path, out + ".pftrace", pb, truth, label)
    if export(path, "chrome", out + ".json") is not None:
        check_chrome(truth, out + ".json", label)
    if export(path, "sqlite", out + ".db") is not None:
        check_sqlite(truth, out + ".db", label)
    for kind in kinds:
        check_csv(truth, path, kind, label)
    return truth
