#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel timeout=180 gate
"""A synthetic trace of stacks in the stack formats: folded, speedscope, pprof. Their contents are compared with what was
written to the trace, not with what sonde reads from it."""
import collections
import gzip
import json
import os
import subprocess
import sys

import export_lib
import perfetto_file
import stacks_lib
import trace_processor
from export_lib import SONDE, TMP, check_all, export
from stacks_lib import FREE, HELD, KERNEL, NASTY, NO_STACK, NOT_SEEN
from tap import done, ok, skip

VIEWS = ("on-cpu", "off-cpu", "gil-wait", "gil-blame")
PROCESSES = {100: "server 100", 200: "</title>\"& 200", 300: "py 300"}


def shown(text):
    """A name as it is displayed: control characters, invalid UTF-8 and bidirectional controls as escapes."""
    out = ""
    for c in (text if isinstance(text, bytes) else text.encode()).decode("utf-8", "surrogateescape"):
        if "\udc80" <= c <= "\udcff":
            out += f"\\x{ord(c) - 0xdc00:02x}"
        elif c in "\u202e\u2028":
            out += f"\\u{{{ord(c):04x}}}"
        elif c == "\n":
            out += "\\n"
        else:
            out += f"\\x{ord(c):02x}" if c < " " or c == "\x7f" else c
    return out


def raw(text):
    return (text if isinstance(text, bytes) else text.encode()).decode("utf-8", "replace")


def last(file):
    parts = file.split(b"/" if isinstance(file, bytes) else "/")
    return parts[-1]


def paths(stacks, view, frame, note):
    """{path of frames: ns} that the trace was written with"""
    out = collections.Counter()
    for (pid, stack, *holder), ns in stacks.weights[view].items():
        path = [note(PROCESSES[pid])] + ([frame(*f) for f in stacks.path(stack)] or [note(NO_STACK)])
        if holder:
            known = holder[0] and holder[0] != FREE
            path += [note(HELD if known else holder[0] or NOT_SEEN)]
            path += [frame(*f) for f in stacks.path(holder[0])][::-1] if known else []
        out[tuple(path)] += ns
    return out


def folded_name(name, file, line, kind):
    text = shown(name) + ("_[k]" if kind == KERNEL else f" ({shown(last(file))})" if file else "")
    return text.replace(";", ":")


def check_folded(stacks, path):
    for view in VIEWS:
        out = os.path.join(TMP, "out.folded")
        if export(path, "folded", out, "--event", view) is None:
            continue
        got = collections.Counter()
        with open(out, encoding="utf-8") as file:
            for line in file:
                frames, _, n = line.rstrip("\n").rpartition(" ")
                got[tuple(frames.split(";"))] += int(n)
        want = paths(stacks, view, folded_name, lambda n: n.replace(";", ":"))
        ok(got == want and sum(got.values()) == sum(want.values()) > 0, f"folded: {view}: {len(want)} stacks",
           [(k, v, want.get(k)) for k, v in got.items() if want.get(k) != v][:3])
    p = subprocess.run([SONDE, "export", path, "--to", "folded"], capture_output=True, text=True)
    ok(p.returncode == 0 and "on-cpu alone" in p.stderr and "gil-blame" in p.stderr, "folded: reports what it left out", p.stderr)
    waits = stacks.weights["gil-wait"]
    unseen = {pid for pid, _, holder in stacks.weights["gil-blame"] if holder in (0, FREE)}
    for word, total, nowhere in (("test_call", 73 * 5000, 1), ("test_mark", 73, 1), ("test_mark:where", 73, 1),
                                 ("test_mark:stack", 73, 3), ("gil_wait:holder_stack", sum(waits.values()), len(unseen))):
        p = subprocess.run([SONDE, "export", path, "--to", "folded", "--event", word], capture_output=True, text=True)
        got = sum(int(line.rpartition(" ")[2]) for line in p.stdout.splitlines())
        ok(p.returncode == 0 and got == total, f"folded: any event: {word}", got)
        none = sum(NO_STACK in line for line in p.stdout.splitlines())
        ok(none == nowhere, f"folded: {word}: an event without stacks is refused with the reason", none)
    for word in ("nothing", "proc_task", "gil_wait:gil", "meta_frame", ""):
        p = subprocess.run([SONDE, "export", path, "--to", "folded", "--event", word], capture_output=True, text=True)
        ok(p.returncode == 2 and "what has: on-cpu" in p.stderr, f"folded: refuses --event '{word}'", p.stderr)


def pip_install(what, name):
    """Installs a package of PyPI in the build directory. Returns (folder or None, reason)."""
    where = os.path.join(os.environ["B"], name)
    if not os.path.isdir(where):
        done = subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--target", f"{where}.{os.getpid()}", what],
                              capture_output=True, text=True)
        if done.returncode:
            return None, (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        os.rename(f"{where}.{os.getpid()}", where)
    return where, None


def fetch(url, path):
    if not os.path.exists(path):
        done = subprocess.run(["curl", "-fsSL", "--max-time", "60", "-o", path + ".new", url], capture_output=True, text=True)
        if done.returncode:
            return done.stderr.strip() or "curl failed"
        os.rename(path + ".new", path)
    return None


SPEEDSCOPE = "1.25.0"


def check_speedscope_schema(document):
    """Validates the document with the schema in speedscope's package."""
    package = os.path.join(os.environ["B"], f"speedscope-{SPEEDSCOPE}.tgz")
    try:
        why = fetch(f"https://registry.npmjs.org/speedscope/-/speedscope-{SPEEDSCOPE}.tgz", package)
        where, no_pip = pip_install("jsonschema==4.17.3", "jsonschema-4.17.3")
    except OSError as e:
        why, where, no_pip = str(e), None, None
    if why or no_pip:
        return skip("speedscope: the published schema accepts it", why or no_pip)
    done = subprocess.run(["tar", "xzOf", package, "package/dist/release/file-format-schema.json"], capture_output=True)
    sys.path.append(where)
    import jsonschema
    schema = json.loads(done.stdout)
    validator = jsonschema.validators.validator_for(schema)(schema)
    errors = [e.message[:200] for e in validator.iter_errors(document)]
    ok(not errors, "speedscope: the published schema accepts it", errors[:3])
    document["profiles"][0]["unit"] = "fortnights"
    ok(list(validator.iter_errors(document)), "speedscope: the schema refuses a wrong document")


def check_speedscope(stacks, path):
    out = os.path.join(TMP, "out.speedscope.json")
    if export(path, "speedscope", out) is None:
        return
    with open(out, encoding="utf-8") as file:
        document = json.load(file)
    frames = document["shared"]["frames"]
    ok([p["name"] for p in document["profiles"]] == ["On-CPU", "Off-CPU", "GIL wait", "GIL blame"], "speedscope: one profile per view")
    for view, profile in zip(VIEWS, document["profiles"]):
        got = collections.Counter()
        for sample, weight in zip(profile["samples"], profile["weights"]):
            got[tuple((frames[i]["name"], frames[i].get("file", "")) for i in sample)] += weight
        want = paths(stacks, view, lambda name, file, line, kind: (raw(name), raw(file)), lambda n: (n, ""))
        ok(got == want, f"speedscope: {view}: {len(want)} stacks",
           [(k, v, want.get(k)) for k, v in got.items() if want.get(k) != v][:3])
        ok(profile["endValue"] == sum(profile["weights"]) == sum(want.values()) and profile["unit"] == "nanoseconds" and
           len(profile["samples"]) == len(profile["weights"]), f"speedscope: {view}: totals")
    ok({(f["name"], f["line"]) for f in frames if f["name"] == "Worker.run"} == {("Worker.run", 20)},
       "speedscope: a function that was loaded twice has one frame")
    check_speedscope_schema(document)


def varints(data):
    at = 0
    while at < len(data):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if not data[at - 1] & 128:
                break
        yield value


def fields(data):
    """Yields (field number, value) of a protobuf message; needs no package."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if not data[at - 1] & 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        else:
            assert key & 7 == 0, f"wire type {key & 7}"
            yield key >> 3, varint()


def read_pprof(data):
    """(types, {(path of (name, file, line), process): values}, default type)"""
    strings, samples, locations, functions, types, default = [], [], {}, {}, [], 0
    for number, value in fields(data):
        if number == 1:
            types.append(dict(fields(value)))
        elif number == 2:
            samples.append(dict(fields(value)))
        elif number == 4:
            message = dict(fields(value))
            locations[message[1]] = dict(fields(message[4]))
        elif number == 5:
            message = dict(fields(value))
            functions[message[1]] = message
        elif number == 6:
            strings.append(value.decode())
        elif number == 14:
            default = value
    out = collections.Counter()
    for sample in samples:
        path = []
        for i in varints(sample.get(1, b"")):
            f = functions[locations[i][1]]
            path.append((strings[f.get(2, 0)], strings[f.get(4, 0)], locations[i].get(2, 0)))
        label = dict(fields(sample[3]))
        assert strings[label[1]] == "process"
        for i, value in enumerate(varints(sample[2])):
            if value:
                out[strings[label[2]], tuple(path[::-1]), i] += value
    return [(strings[t[1]], strings[t[2]]) for t in types], out, strings[default], strings[0]


def check_pprof(stacks, path):
    out = os.path.join(TMP, "out.pb.gz")
    if export(path, "pprof", out) is None:
        return
    with gzip.open(out) as file:
        data = file.read()
    types, got, default, first = read_pprof(data)
    names = [v.replace("-", "_") for v in VIEWS]
    ok(types == [t for n in names for t in ((n + "_events", "count"), (n, "nanoseconds"))] and default == "on_cpu" and
       first == "", "pprof: types of values", types)
    for at, view in enumerate(VIEWS):
        want = paths(stacks, view, lambda name, file, line, kind: (raw(name), raw(file), line), lambda n: (n, "", 0))
        want = {(p[0][0], p[1:]): ns for p, ns in want.items()}
        mine = {(process, frames): ns for (process, frames, i), ns in got.items() if i == 2 * at + 1}
        ok(mine == want, f"pprof: {view}: {len(want)} stacks", [(k, v, want.get(k)) for k, v in mine.items() if want.get(k) != v][:3])
        events = sum(n for (_, _, i), n in got.items() if i == 2 * at)
        ok(events == stacks.events[{"on-cpu": "sample_cpu", "off-cpu": "sample_off", "gil-blame": "pieces"}.get(view, "gil_wait")],
           f"pprof: {view}: events", events)
    check_pprof_classes(data, got)
    check_pprof_go(out, stacks)


def check_pprof_classes(data, mine):
    """Reads the profile with classes compiled from the official profile.proto, as packaged by Debian."""
    folder = os.path.join(os.environ["B"], "pprof-proto")
    why = None
    if not os.path.exists(os.path.join(folder, "profile_pb2.py")):
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run("apt-get download -qq golang-github-google-pprof-dev && dpkg-deb -x golang-github*.deb x && "
                              "cp x/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto .",
                              shell=True, cwd=folder, capture_output=True, text=True)
        why = done.stderr.strip().splitlines()[-1:] if done.returncode else None
    tools, no_pip = pip_install("grpcio-tools==1.66.2", "grpcio-tools-1.66.2")
    if why or no_pip:
        return skip("pprof: the official classes read it", why or no_pip)
    done = subprocess.run(["/usr/bin/python3", "-m", "grpc_tools.protoc", "-I.", "--python_out=.", "profile.proto"], cwd=folder,
                          env={**os.environ, "PYTHONPATH": tools}, capture_output=True, text=True)
    script = """
import json, sys
sys.path[:0] = sys.argv[1:3]
import profile_pb2
from google.protobuf.unknown_fields import UnknownFieldSet
p = profile_pb2.Profile()
p.ParseFromString(sys.stdin.buffer.read())
ids = [l.id for l in p.location], [f.id for f in p.function], [m.id for m in p.mapping]
sound = all(0 not in i and len(set(i)) == len(i) for i in ids) and {m for l in p.location for m in [l.mapping_id] if m} <= set(ids[2])
sound = sound and {l.function_id for x in p.location for l in x.line} <= set(ids[1])
sound = sound and {i for s in p.sample for i in s.location_id} <= set(ids[0]) and not len(UnknownFieldSet(p))
print(json.dumps([sound, len(p.sample_type), [sum(s.value[i] for s in p.sample) for i in range(len(p.sample_type))]]))
"""
    read = subprocess.run(["/usr/bin/python3", "-c", script, tools, folder], input=data, capture_output=True)
    sums = [sum(v for (_, _, i), v in mine.items() if i == k) for k in range(8)]
    ok(read.returncode == 0 and json.loads(read.stdout) == [True, 8, sums], "pprof: the official classes read it",
       (done.stderr, read.stderr.decode()[-300:], read.stdout))


def check_pprof_go(path, stacks):
    try:
        done = subprocess.run(["go", "tool", "pprof", "-top", "-unit=ns", "-sample_index=gil_wait", path], capture_output=True, text=True)
    except OSError:
        return skip("pprof: `go tool pprof` reads it", "go is not installed")
    total = sum(stacks.weights["gil-wait"].values())
    ok(done.returncode == 0 and f"of {total}ns total" in done.stdout, "pprof: `go tool pprof` reads it", done.stdout[:300] + done.stderr)


def check_empty(fmt):
    """Exports a trace without stacks, and one whose events have no field for them."""
    empty = stacks_lib.Stacks()
    empty.line("proc_task", time="@0", pid=1, tid=1, comm='"x"')
    for name, path in (("without stacks", empty.write(TMP, "empty")), ("of an older sonde", stacks_lib.old_trace(TMP))):
        p = subprocess.run([SONDE, "export", path, "--to", fmt, "-f", "-o", os.path.join(TMP, "empty.out")], capture_output=True, text=True)
        ok(p.returncode == 0 and "no stacks: record with" in p.stderr, f"{fmt}: the message for a trace {name} has a remedy", p.stderr)


def shown_label(name, file, line, kind):
    file = raw(last(file))
    if kind == 1 and file:
        return f"{file}:{line} {raw(name)}" if line else f"{file} {raw(name)}"
    return f"{raw(name)} (kernel)" if kind == KERNEL else f"{raw(name)} ({file})" if file else raw(name)


def check_trace_processor(stacks, path):
    """Queries the Perfetto export: samples with their frames, slices with both stacks."""
    library, why = trace_processor.library()
    if not library:
        return skip("trace_processor reads the samples", why)
    with open(path, "rb") as file:
        tp = trace_processor.TraceProcessor(library, file.read())
    bad = tp.query("SELECT name, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0")
    ok(not bad, "trace_processor loads the file without complaint", bad)
    got = collections.Counter({name: int(n) for name, n in tp.query(
        "SELECT f.name, count(*) FROM perf_sample s JOIN stack_profile_callsite c ON c.id = s.callsite_id "
        "JOIN stack_profile_frame f ON f.id = c.frame_id GROUP BY 1")})
    want = collections.Counter()
    for line in stacks.lines:
        stack = int(line.rpartition("stack=")[2]) if line.startswith("sample_cpu ") else 0
        if stack:
            name, _, _, kind = stacks.path(stack)[-1]
            want[raw(name if name[:2] != "0x" else "")] += 1
    ok(got == want, "trace_processor reads the samples and their stacks", (got - want, want - got))
    got = tp.query("SELECT count(*), sum(dur), count(extract_arg(arg_set_id, 'debug.stack')), "
                   "count(extract_arg(arg_set_id, 'debug.holder_stack')) FROM slice WHERE name = 'gil_wait'")
    total = sum(stacks.weights["gil-wait"].values())
    waits = [line for line in stacks.lines if line.startswith("gil_wait ")]
    have = [str(sum(f" {field}=" in w and f" {field}=0" not in w for w in waits)) for field in ("stack", "holder_stack")]
    ok(got == [[str(len(waits)), str(total), *have]], "trace_processor reads the waits, their stacks and their holders' stacks", got)
    got = {name: int(ns) for name, ns in tp.query(
        "SELECT coalesce(extract_arg(s.arg_set_id, 'debug.holder'), '?'), sum(s.dur) FROM slice s JOIN thread_track t "
        "ON t.id = s.track_id WHERE t.name = 'GIL blame' GROUP BY 1")}
    want = collections.Counter()
    for (_, _, holder), ns in stacks.weights["gil-blame"].items():
        if holder in stacks.frames:
            want[shown_label(*stacks.path(holder)[-1])] += ns
        else:
            want["free: woken, not running yet" if holder else "holder unknown"] += ns
    ok(got == want, "trace_processor: the GIL's holders and their time", {k: (got.get(k), want.get(k)) for k in {*got, *want}
                                                                        if got.get(k) != want.get(k)})
    got = tp.query("SELECT count(*) FROM slice s JOIN thread_track t ON t.id = s.track_id WHERE t.name = 'GIL blame' AND "
                   "extract_arg(s.arg_set_id, 'debug.waiter') = 'encoder.py:257 iterencode' AND "
                   "extract_arg(s.arg_set_id, 'debug.waiter_thread') = 'server 100'")
    ok(int(got[0][0]) > 1, "trace_processor: the waiter is in the arguments", got)
    got = tp.query("SELECT DISTINCT display_value FROM args WHERE key = 'debug.holder_stack'")
    ok(["encoder.py:257 iterencode"] in got, "trace_processor: a holder's name is its innermost frame", got[:5])


def main():
    stacks, path = stacks_lib.sample_trace(TMP)
    check_folded(stacks, path)
    check_speedscope(stacks, path)
    check_pprof(stacks, path)
    for fmt in ("folded", "speedscope", "pprof", "flame"):
        check_empty(fmt)
    pb, why = perfetto_file.classes()
    if not pb:
        skip("Perfetto files", why)
    check_all(path, pb, "stacks", ("gil_wait", "sample_cpu"))
    if pb:
        check_trace_processor(stacks, os.path.join(TMP, "out.pftrace"))
    hostile = os.path.join(export_lib.ROOT, "tests", "fuzz", "seeds", "trace", "stacks-hostile.sonde")
    for fmt in ("folded", "speedscope", "pprof", "flame"):
        p = subprocess.run([SONDE, "export", hostile, "--to", fmt, "-f", "-o", os.path.join(TMP, "hostile")], capture_output=True,
                           text=True)
        # one frame is its own caller, two are each other's, one has a caller that does not exist
        ok(p.returncode == 0 and "3 frames have no caller" in p.stderr, f"{fmt}: cycles and missing callers are reported", p.stderr)
    p = subprocess.run([SONDE, "export", path, "--to", "text"], capture_output=True, text=True)
    ok(' stack="app.py:5 main" holder_stack=' in p.stdout, "text: events have the labels of their stacks")
    merged = subprocess.run([SONDE, "export", path, path, "--to", "folded"], capture_output=True, text=True)
    total = sum(int(line.rpartition(" ")[2]) for line in merged.stdout.splitlines())
    ok(merged.returncode == 0 and total == 2 * sum(stacks.weights["on-cpu"].values()), "folded: two traces are added up", merged.stderr)
    assert len(NASTY) > 5
    done()


main()
