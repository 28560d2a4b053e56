#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Synthetic traces, exported to every format and read back: names with invalid bytes, spans that overlap or begin
together, losses, a recording that was cut off, a file whose end is torn."""
import collections
import csv
import json
import os
import subprocess

import engine_lib
import perfetto_file
from export_lib import ROOT, SONDE, TMP, Truth, check_all, check_perfetto, export
from sonde_cli import make_trace
from tap import done, ok, skip

GOLDEN = os.path.join(ROOT, "tests", "golden")

# Overlapping spans of one thread, which need several tracks in Perfetto, and nested ones, which fit on one
ODD = """
meta_probe time=@0 number=1 family=3 name="outer" program="p" section="s"
meta_probe time=@0 number=2 family=3 name="inner" program="p" section="s"
cuda_sync probe=1 pid=5 tid=6 start=@1 time=@2
cuda_sync probe=2 pid=5 tid=6 start=@1.5 time=@2.5
cuda_sync probe=1 pid=5 tid=6 start=@1.7 time=@2.7
cuda_sync probe=2 pid=5 tid=6 start=@3 time=@3.5
cuda_sync probe=1 pid=5 tid=6 start=@3 time=@4
cuda_sync probe=1 pid=5 tid=6 start=@4 time=@5
cuda_sync probe=2 pid=5 tid=6 start=@4.5 time=@5
cuda_sync probe=2 pid=5 tid=6 start=@5 time=@5
cuda_sync probe=2 pid=5 tid=6 start=@6 time=@7
cuda_sync probe=2 pid=5 tid=6 start=@6 time=@7
cuda_sync probe=1 pid=5 tid=6 start=@5.5 time=@60
gil_wait pid=5 tid=6 start=@8 time=@9 gil=0xf000000000000001 result=GIL_WAIT_SIGNAL dropper=5 drop_time=@7 number=1
gil_wait pid=5 tid=6 start=@9 time=@10 gil=0xf000000000000001 result=GIL_WAIT_SIGNAL dropper=5 drop_time=@10 number=2
gil_drop time=@10 pid=5 tid=5 gil=0xf000000000000001 waiter=6 number=2
gil_wait pid=5 tid=7 start=@9 time=@30 gil=0xf000000000000001 result=77 number=1
flush
cuda_copy probe=2 pid=5 tid=6 start=@50 time=@51 bytes=18446744073709551615 kind=CUDA_COPY_HTOD
cuda_copy probe=2 pid=5 tid=6 start=@52 time=@53 ret=-1 flags=2
meta_end time=@60 reason=END_SIGNAL
"""


# Spans that touch or cross in each way, and a thread that was woken at the time of its switch
TOUCHING = """
meta_probe time=@0 number=1 family=3 name="outer" program="p" section="s"
proc_task time=@0 pid=5 tid=5 ppid=1 ns_pid=5 comm="waiter"
proc_task time=@0 pid=5 tid=7 ppid=1 ns_pid=5 comm="dropper"
cuda_sync probe=1 pid=5 tid=5 start=@2 time=@3
cuda_sync probe=1 pid=5 tid=5 start=@1 time=@2
cuda_sync probe=1 pid=5 tid=5 start=@3 time=@4
cuda_sync probe=1 pid=5 tid=5 start=@3 time=@3
cuda_sync probe=1 pid=5 tid=5 start=@4 time=@4
cuda_sync probe=1 pid=5 tid=5 start=@6 time=@8
gil_wait pid=5 tid=5 start=@5 time=@9 gil=0xf000000000000001 result=GIL_WAIT_SIGNAL dropper=7 drop_time=@7 number=1
gil_wait pid=5 tid=5 start=@9 time=@10 gil=0xf000000000000001 result=GIL_WAIT_SIGNAL dropper=7 drop_time=@9 number=2
gil_wait pid=5 tid=5 start=@10 time=@11 gil=0xf000000000000001 result=GIL_WAIT_SIGNAL dropper=7 drop_time=@11 number=3
gil_wait pid=5 tid=5 start=@11 time=@12 gil=0xf000000000000001 result=GIL_WAIT_SIGNAL dropper=7 drop_time=@10.5 number=4
sched_run pid=5 tid=7 cpu=0 start=@1 time=@5 state=SCHED_RUNNABLE
sched_run pid=5 tid=5 cpu=1 start=@1 time=@4 state=SCHED_SLEEP
sched_off pid=5 tid=5 cpu=1 start=@4 time=@4.5 wake=@4.5 state=SCHED_SLEEP waker_pid=5 waker_tid=7 waker=WAKER_THREAD
sched_run pid=5 tid=5 cpu=1 start=@4.5 time=@7 state=SCHED_SLEEP
sched_off pid=5 tid=5 cpu=1 start=@7 time=@8 wake=@7.5 state=SCHED_SLEEP waker_pid=5 waker_tid=7 waker=WAKER_THREAD
sched_run pid=5 tid=5 cpu=1 start=@8 time=@9 state=SCHED_RUNNABLE
sched_off pid=5 tid=7 cpu=0 start=@5 time=@6 wake=@5 state=SCHED_RUNNABLE
sched_run pid=5 tid=7 cpu=0 start=@6 time=@9 state=SCHED_SLEEP
meta_end time=@60 reason=END_SIGNAL
"""

# Families that this build does not have: (name, id, [(field, type, size, unit)], events of the text below)
LATER = (("lock_wait", 0x0a01, False, [("lock", "unsigned", 8, "hex"), ("woken", "unsigned", 8, "moment"),
                                       ("waker_pid", "unsigned", 4, "task"), ("waker_tid", "unsigned", 4, "task"),
                                       ("result", "signed", 4, "errno")]),
         ("disk_io", 0x0801, False, [("bytes", "unsigned", 8, "bytes")]),
         ("syscall", 0x0701, True, [("nr", "enum", 4, ""), ("path", "tail", 0, "")]))
LATER_EVENTS = """
proc_task time=@0 pid=5 tid=5 ppid=1 ns_pid=1 comm="server"
proc_image time=@0 pid=5 tid=5 exe="/bin/server" command="server -d" container="docker 0123456789ab"
lock_wait pid=5 tid=6 start=@1 time=@2 lock=0x7f01 woken=@1.9 waker_pid=5 waker_tid=7
lock_wait pid=5 tid=6 start=@3 time=@4 lock=0x7f01 result=-110
disk_io pid=5 tid=7 start=@1 time=@3 bytes=4096
disk_io pid=5 tid=7 start=@2 time=@4 bytes=8192
disk_io pid=5 tid=7 start=@2.5 time=@2.6 bytes=8192
disk_io pid=0 tid=0 start=@2 time=@4 bytes=1
disk_io pid=0 tid=0 start=@3 time=@5 bytes=2
syscall pid=5 tid=7 start=@1.5 time=@2.2 nr=read ret=-2 path="/etc/\\xff,\\"x"
syscall pid=5 tid=7 start=@2.3 time=@2.4 nr=99 ret=-2
meta_end time=@60 reason=END_SIGNAL
"""


def later_schema():
    """The golden schema with these families, and a container in proc_image."""
    with open(os.path.join(GOLDEN, "schema.json")) as file:
        schema = json.load(file)
    schema["enums"].append({"name": "syscall_nr", "values": [{"name": "read", "value": 0}, {"name": "write", "value": 1}]})
    begin = next(e for e in schema["events"] if e["name"] == "cuda_sync")["fields"][:9]
    for name, number, is_call, fields in LATER:
        schema["families"].append({"id": number >> 8, "name": name.split("_")[0], "doc": "later"})
        event = {"id": number, "name": name, "doc": "later", "fields": begin[:8 + is_call]}
        at = 32 + 8 * is_call
        for field, kind, size, unit in fields:
            event["fields"] = event["fields"] + [{"name": field, "type": kind, "size": size, "offset": at, "unit": unit}]
            event["fields"][-1].update({"enum": "syscall_nr"} if kind == "enum" else {})
            at += size
        event["size"] = at
        schema["events"].append(event)
    image = next(e for e in schema["events"] if e["name"] == "proc_image")
    image["fields"].append({"name": "container", "type": "unsigned", "size": 4, "offset": image["size"], "unit": "string"})
    image["size"] += 4
    schema["events"].sort(key=lambda e: e["id"])
    path = os.path.join(TMP, "later.json")
    with open(path, "w") as file:
        json.dump(schema, file)
    return path


def check_later(pb):
    path = make("later", LATER_EVENTS, later_schema())
    check_all(path, pb, "families of later versions", ("lock_wait", "syscall", "disk_io"))
    if not pb:
        return
    with open(os.path.join(TMP, "out.pftrace"), "rb") as file:
        f = perfetto_file.PerfettoFile(pb, file.read())
    labels = [list(t.process.process_labels) for t in f.tracks.values() if t.HasField("process")]
    ok(labels == [["docker 0123456789ab"]], "a process is labelled with its container", labels)
    calls = [s for s in f.slices if s.category == "syscall"]
    ok({s.name for s in calls} == {"read", "syscall"} and all(f.tracks[s.track].HasField("thread") for s in calls),
       "system calls are on their thread's track, regardless of other open spans", [s.name for s in calls])


def make(name, text=None, schema="schema.json"):
    if not text:
        with open(os.path.join(GOLDEN, name + ".events")) as file:
            text = file.read()
    return make_trace(os.path.join(TMP, name), text, os.path.join(GOLDEN, schema))


def check_torn(path, pb):
    """The file without its index and half of its last chunk."""
    torn = os.path.join(TMP, "torn.sonde")
    with open(path, "rb") as file:
        data = file.read()
    at = max(c.offset for c in Truth(path).trace.chunks)
    with open(torn, "wb") as file:
        file.write(data[:at + 100])
    truth = check_all(torn, pb, "torn")
    ok(truth.trace.torn, "torn: info reports torn bytes")


# What both cycles refer to is written in the first one.
CYCLES = """
disk_file time=@1.1 pid=5 tid=5 dev=1 ino=7 path="/data"
disk_io pid=5 tid=5 start=@1.2 time=@1.3 bytes=4096 ino=7
disk_io pid=5 tid=5 start=@2.2 time=@2.3 bytes=4096 ino=7
disk_io pid=5 tid=5 start=@3.2 time=@3.3 bytes=8192 ino=7
torch_phase time=@1 pid=5 tid=5 since=0 cycle=1 phase=3
torch_phase time=@2 pid=5 tid=5 since=@1 cycle=1 phase=1
torch_phase time=@3 pid=5 tid=5 since=0 cycle=2 phase=3
torch_phase time=@4 pid=5 tid=5 since=@3 cycle=2 phase=1
meta_end time=@5 reason=END_SIGNAL
"""


def check_cycle():
    with open(os.path.join(GOLDEN, "torch.schema.json")) as file:
        schema = json.load(file)
    with open(os.path.join(GOLDEN, "disk.schema.json")) as file:
        disk = json.load(file)
    common = [f for f in schema["events"][0]["fields"] if f["offset"] < 24]
    fields = [{"name": n, "type": "unsigned", "size": size, "offset": at, **more}
              for n, size, at, more in (("since", 8, 24, {"unit": "moment"}), ("cycle", 4, 32, {}), ("phase", 4, 36, {}))]
    schema["events"].append({"name": "torch_phase", "id": 0x0e11, "size": 40, "fields": common + fields})
    schema["enums"] += [e for e in disk["enums"] if e["name"].startswith("disk_")]
    schema["families"] += [f for f in disk["families"] if f["name"] == "disk"]
    schema["events"] += [e for e in disk["events"] if e["name"] in ("disk_file", "disk_io")]
    trace, part = make_trace(os.path.join(TMP, "cycles"), CYCLES, schema), os.path.join(TMP, "second.sonde")
    subprocess.run([SONDE, "export", trace, "--to", "cycle", "--event", "2", "-o", part], check=True)
    truth = Truth(part).trace
    ok([e["path"] for e in truth.events("disk_file")] == ["/data"], "a cycle has the names that were written before it")
    ok([e["bytes"] for e in truth.events("disk_io")] == [8192], "a cycle has no I/O of another time", list(truth.events("disk_io")))


def check_refusals(path):
    for args, words in ((["--to", "csv"], "which events"), (["--to", "csv", "--event", "nothing"], "no events 'nothing'"),
                        (["--to", "text", "--event", "gil_wait"], "format text takes no --event"),
                        (["--to", "sqlite"], "name one with -o")):
        p = subprocess.run([SONDE, "export", path, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        ok(p.returncode == 2 and words in p.stderr, f"refuses {' '.join(args)}", p.stderr)
    p = subprocess.run([SONDE, "export", path, "--to", "perfetto"], stdout=open("/dev/full", "w"), stderr=subprocess.PIPE)
    ok(p.returncode == 1 and b"failed" in p.stderr, "a full disk is reported", p.stderr)
    p = subprocess.run([SONDE, "export", path, "--to", "sqlite", "-f", "-o", "/dev/full"], capture_output=True)
    ok(p.returncode == 1, "sqlite into a device fails", p.stderr)


def check_part():
    """--time cuts spans at its ends, and -p leaves out other processes; both keep the names."""
    slow, whole, part = os.path.join(ROOT, "docs", "demo", "slow.sonde"), TMP + "/whole.csv", TMP + "/part.csv"
    export(slow, "csv", whole, "--event", "sched_off")
    export(slow, "csv", part, "--event", "sched_off", "--time", "0.3..0.4")

    def spans(path):
        with open(path, encoding="utf-8") as f:
            return sorted((int(r["tid"]), int(r["start (ns)"]), int(r["time (ns)"])) for r in csv.DictReader(f))
    start = int(Truth(slow).trace.head["clocks"]["monotonic"])
    low, high = start + 300_000_000, start + 400_000_000
    want = sorted((tid, max(a, low), min(b, high)) for tid, a, b in spans(whole) if b > low and a < high)
    ok(spans(part) == want and len(want) > 500, "--time: spans of this time, cut at its ends", f"{len(spans(part))} of {len(want)}")
    for pid, there in ((7455, True), (1, False)):
        export(slow, "csv", part, "--event", "sched_off", "-p", str(pid))
        ok(bool(spans(part)) == there and (not there or spans(part) == spans(whole)), f"-p {pid}: its events alone", len(spans(part)))
    export(slow, "perfetto", TMP + "/part.pftrace", "--time", "0.3..0.4", "-p", "7455")
    with open(TMP + "/part.pftrace", "rb") as f:
        ok(b"journal.py" in f.read(), "a part has the names")
    p = subprocess.run([SONDE, "export", slow, "--to", "text", "--time", "1..0"], capture_output=True, text=True)
    ok(p.returncode == 2 and "--time" in p.stderr + "--time", "a range that ends before it begins is refused", p.stderr)


def check_doubles():
    """Readers such as speedscope refuse a span whose ts + dur, as a double, is later than the end of the span around it."""
    out, threads, bad, n = TMP + "/doubles.json", collections.defaultdict(list), 0, 0
    export(os.path.join(ROOT, "docs", "demo", "slow.sonde"), "chrome", out)
    with open(out, encoding="utf-8") as f:
        for e in json.load(f)["traceEvents"]:
            if e["ph"] == "X":
                threads[e["pid"], e["tid"]].append((e["ts"], -(e["ts"] + e["dur"])))
    for spans in threads.values():
        open_ends = []
        for start, end in sorted(spans):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            bad += bool(open_ends) and -end > open_ends[-1]
            open_ends.append(-end)
            n += 1
    ok(n > 10000 and not bad, "times as doubles: spans of a Chrome export nest", f"{bad} of {n} end too late")


def main():
    pb, why = perfetto_file.classes()
    if not pb:
        skip("Perfetto files", why)
    run = make("run")
    engine_lib.check_all(check_all(run, pb, "run", ("gil_wait", "cuda_copy", "proc_exec", "sched_off")), run, "run")
    check_all(make("cut"), pb, "cut", ("cuda_copy",))
    odd = make("odd", ODD)
    engine_lib.check_all(check_all(odd, pb, "odd spans", ("cuda_copy",)), odd, "odd spans")
    touching = make("touching", TOUCHING)
    engine_lib.check_all(check_all(touching, pb, "touching spans", ("sched_off",)), touching, "touching spans")
    check_all(make("torch", schema="torch.schema.json"), pb, "torch", ("torch_op", "torch_node", "torch_range"))
    check_torn(odd, pb)
    check_later(pb)
    if pb and export(make("empty"), "perfetto", TMP + "/empty.pftrace") is not None:
        with open(TMP + "/empty.pftrace", "rb") as file:
            check_perfetto(Truth(TMP + "/empty.sonde"), pb, file.read(), "empty")
    check_part()
    check_doubles()
    check_cycle()
    check_refusals(run)
    done()


main()
