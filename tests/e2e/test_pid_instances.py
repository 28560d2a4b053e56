#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Two processes with one pid and threads with one tid: apart from the ids, every report and export must equal that of the same two
processes with different ids."""
import collections
import json
import os
import re
import sqlite3
import subprocess

import engine_lib
import trace_processor
from export_lib import ROOT, SONDE, TMP
from sonde_cli import make_trace, tables
from tap import done, ok, skip

GOLDEN = os.path.join(ROOT, "tests", "golden")
REPORTS = ("summary", "cuda-api", "cuda-kern", "cuda-kern-launch", "cuda-trace", "gil", "gpu", "locks", "losses", "memory",
           "offcpu", "osrt", "processes", "sched", "timeline")
SECOND = 200, 201
OTHER = 300, 301  # ids of the second process in the trace with different ids


def life(begin, pid, tid, name, ms, gpu):
    """The events of a process with two threads within its second. All durations are multiples of ms."""
    def at(x):
        return f"@{begin + x * ms / 1000:.6f}"
    return f"""
proc_fork time={at(0)} pid=100 tid=100 child_pid={pid} child_tid={pid} child_ns_pid={pid} comm="server"
proc_exec time={at(1)} pid={pid} tid={pid} comm="{name}" path="/bin/{name}"
proc_fork time={at(2)} pid={pid} tid={pid} child_pid={pid} child_tid={tid} child_ns_pid={pid} comm="{name}-w"
gpu_shim time={at(3)} pid={pid} tid={pid} state=GPU_SHIM_STARTED groups=79 version=130000 text="CUPTI 13"
gpu_device time={at(3)} pid={pid} device=0 uuid_first={gpu} uuid_last={gpu} memory=1000000 multiprocessors=8 model="GPU of {name}"
gpu_name time={at(3)} pid={pid} tid={pid} name={gpu} text="kernel_of_{name}"
gpu_call pid={pid} tid={tid} start={at(10)} time={at(11)} function=211 correlation=7
cuda_sync probe=1 pid={pid} tid={tid} cpu=0 start={at(4)} time={at(9)}
cuda_launch probe=2 pid={pid} tid={tid} cpu=0 start={at(10)} time={at(11)} stream=0
gpu_kernel pid={pid} tid={tid} start={at(12)} time={at(17)} name={gpu} device=0 context=1 stream=7 correlation=7
gil_wait pid={pid} tid={tid} cpu=0 start={at(20)} time={at(23)} gil=0x1000 result=GIL_WAIT_SIGNAL dropper={pid} drop_time={at(23)} number=1
gil_drop time={at(23)} pid={pid} tid={pid} cpu=1 gil=0x1000 waiter={tid} number=1
sched_run pid={pid} tid={tid} cpu=0 start={at(4)} time={at(20)} state=SCHED_SLEEP charged={16 * ms * 1000000}
sched_off pid={pid} tid={tid} cpu=0 start={at(20)} time={at(23)} wake={at(22)} state=SCHED_SLEEP waker_pid={pid} waker_tid={pid} waker=WAKER_THREAD
sched_run pid={pid} tid={tid} cpu=0 start={at(23)} time={at(30)} state=SCHED_DEAD charged={7 * ms * 1000000}
sched_run pid={pid} tid={pid} cpu=1 start={at(4)} time={at(22)} state=SCHED_DEAD charged={18 * ms * 1000000}
syscall pid={pid} tid={tid} cpu=0 start={at(24)} time={at(25)} nr=0 ret=5
lock_wait pid={pid} tid={tid} cpu=0 start={at(26)} time={at(28)} lock=0x2000 owner={pid} waker_pid={pid} waker_tid={pid} woken={at(27)} value=1
sample_cpu time={at(5)} pid={pid} tid={tid} cpu=0 period={ms * 1000000}
proc_exit time={at(29)} pid={pid} tid={pid} code=0
proc_exit time={at(30)} pid={pid} tid={tid} code=0 group_dead=1
"""


def make(name, second, apart):
    """apart: one chunk per process; otherwise one chunk with both, ordered by kind."""
    path = os.path.join(TMP, name)
    lines = """
meta_probe time=@0 number=1 family=3 name="cudaDeviceSynchronize" program="p" section="s"
meta_probe time=@0 number=2 family=3 name="cudaLaunchKernel" program="p" section="s"
proc_task time=@0 pid=100 tid=100 ppid=1 ns_pid=100 comm="server"
""" + life(1, 200, 201, "first", 10, 11) + ("flush" if apart else "") + life(2, *second, "second", 20, 22) + """
meta_end time=@4 reason=END_SIGNAL stop=@4
"""
    return make_trace(path, lines, f"{GOLDEN}/stop.schema.json")


def run(*args):
    p = subprocess.run([SONDE, *args], capture_output=True, text=True)
    return p.stdout if p.returncode == 0 else f"exit {p.returncode} {p.stderr}"


def renumbered(text):
    """The output for the trace with different ids, with the second process's ids replaced by the reused ones"""
    for number, number_again in zip(OTHER, SECOND):
        text = re.sub(rf"\b{number}\b", str(number_again), text)
    return text


def without_file(out, path):
    return out.replace(path, "FILE")


def rows(out):
    """A report's JSON as a value that does not depend on the order of equal rows"""
    tree = json.loads(out)
    tables = {name: sorted(json.dumps(r, sort_keys=True) for r in table) for name, table in tree["tables"].items()}
    return tables, sorted(json.dumps(f, sort_keys=True) for f in tree["findings"])


def check_reports(again, other, label):
    names = re.findall(r"^  (\S+)", run("report", "--help").split("The reports:")[1].split("--format")[0], re.M)
    ok(set(REPORTS) <= set(names), "the list of reports is complete", names)
    for report in names:
        got = without_file(run("report", again, report, "--format", "json"), again)
        expected = renumbered(without_file(run("report", other, report, "--format", "json"), other))
        if not got.startswith("{") or not expected.startswith("{"):
            ok(False, f"{label}: report {report}", got[:300])
            continue
        got, expected = rows(got), rows(expected)
        differ = [(t, [r for r in got[0][t] if r not in expected[0][t]][:2], [r for r in expected[0][t] if r not in got[0][t]][:2])
                  for t in expected[0] if got[0].get(t) != expected[0][t]]
        ok(got == expected, f"{label}: report {report} has two processes",
           differ or ([f for f in got[1] if f not in expected[1]], [f for f in expected[1] if f not in got[1]]))


def check_filters(again, other):
    """-p and --tid select every process or thread that had the id."""
    for args, args_other in ((("-p", "200"), ("-p", "200,300")), (("--tid", "201"), None)):
        got = rows(run("report", again, "cuda-api", *args, "--format", "json"))[0]
        if args_other:
            expected = rows(renumbered(run("report", other, "cuda-api", *args_other, "--format", "json")))[0]
        else:
            expected = rows(renumbered(run("report", other, "cuda-api", "--format", "json")))[0]
        ok(got == expected and sum(len(t) for t in got.values()) > 2, f"{' '.join(args)} selects both", (got, expected))


def check_text(again, other, label):
    got, expected = run("export", again, "--to", "text"), renumbered(run("export", other, "--to", "text"))
    got, expected = (sorted(re.sub(" +", " ", line) for line in t.splitlines()) for t in (got, expected))
    ok(got == expected, f"{label}: text", [x for x in got if x not in expected][:5] + [x for x in expected if x not in got][:5])


def database(path):
    out = path + ".db"
    run("export", path, "--to", "sqlite", "-f", "-o", out)
    db = sqlite3.connect(out)
    tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type='table'") if r[0].startswith("sonde_") and r[0] != "sonde_info"]
    columns = {t: "pid, tid, name" if t == "sonde_threads" else "*" for t in tables}
    joined = db.execute("SELECT t.name, sum(r.time - r.start) FROM sonde_sched_run r JOIN sonde_threads t ON t.pid = r.pid AND t.tid = r.tid "
                        "AND r.start BETWEEN t.since AND t.until - 1 GROUP BY r.tid, t.since").fetchall()
    return {"joined": sorted(joined),
            **{t: sorted(renumbered(repr(r)) for r in db.execute(f'SELECT {columns[t]} FROM "{t}"')) for t in tables}}


def check_sqlite(again, other, label):
    got, expected = database(again), database(other)
    ok(got == expected and len(got["sonde_threads"]) >= 4, f"{label}: SQLite", [(t, got[t], expected[t]) for t in expected if got.get(t) != expected[t]][:2])


def chrome(path):
    """([(process, thread, name, begin, duration)] of spans, by name instead of id; {name: number of ids})"""
    events = json.loads(run("export", path, "--to", "chrome"))["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    labels = {e["args"].get("labels", e["args"].get("name")) for e in events if e["name"] == "process_labels"}
    spans = sorted((processes.get(e["pid"]), re.sub(r"\b\d+\b", "N", threads.get((e["pid"], e["tid"]), "?")), e["name"], e["ts"],
                    e.get("dur", 0)) for e in events if e["ph"] in "Xi")
    return spans, labels


def check_chrome(again, other, label):
    got, expected = chrome(again), chrome(other)
    ok(got[0] == expected[0], f"{label}: Chrome's JSON", [x for x in got[0] if x not in expected[0]] + [x for x in expected[0] if x not in got[0]])
    ok(any("200" in x for x in got[1]), f"{label}: Chrome's JSON has a separate id for the second process", got[1])


QUERIES = {
    "processes": "SELECT pid, name, cmdline FROM process WHERE pid >= 100",
    "threads": "SELECT tid, t.name, p.name FROM thread t JOIN process p USING(upid) WHERE tid >= 100",
    "slices of threads": "SELECT p.name, t.name, tid, s.name, ts, dur FROM slice s JOIN thread_track k ON s.track_id = k.id "
                         "JOIN thread t USING(utid) JOIN process p USING(upid)",
    "runs": "SELECT cpu, ts, dur, tid, t.name, p.name FROM sched s JOIN thread t USING(utid) LEFT JOIN process p USING(upid) WHERE tid",
    # a fork event makes the thread runnable at that time
    "states": "SELECT ts, dur, state, tid, t.name FROM thread_state s JOIN thread t USING(utid) WHERE tid AND ts IS NOT start_ts",
    "samples": "SELECT ts, tid, t.name FROM perf_sample s JOIN thread t USING(utid)",
}


def perfetto(library, path):
    out = path + ".pftrace"
    run("export", path, "--to", "perfetto", "-f", "-o", out)
    with open(out, "rb") as f:
        engine = engine_lib.Engine(library, f.read())
    engine_lib.check_complaints(engine, os.path.basename(path))
    return {name: collections.Counter(renumbered(repr(row)) for row in engine.query(q)) for name, q in QUERIES.items()}


def check_perfetto(library, again, other, label):
    got, expected = perfetto(library, again), perfetto(library, other)
    for name in QUERIES:
        ok(got[name] == expected[name], f"{label}: Perfetto's {name}", (got[name] - expected[name], expected[name] - got[name]))


def check_recorded_once():
    """A recording names a file or a call site once per pid. The second process with the pid must have the names too."""
    path = os.path.join(TMP, "once")
    calls = "".join(f"""
proc_fork time=@{at} pid=100 tid=100 child_pid=200 child_tid=200 child_ns_pid=200 comm="{name}"
syscall pid=200 tid=200 cpu=0 start=@{at}.1 time=@{at}.2 nr=0 ret=5 file=1
lock_wait pid=200 tid=200 cpu=0 start=@{at}.3 time=@{at}.4 lock=0x2000 site=0x5000 value=1
proc_exit time=@{at}.5 pid=200 tid=200 code=0 group_dead=1
""" + ("""
syscall_file time=@1.1 pid=200 tid=200 file=1 path="/srv/file"
lock_site time=@1.4 pid=200 tid=200 address=0x5000 offset=0x10 module="/bin/first" symbol="take+0x10"
""" if at == 1 else "") for at, name in ((1, "first"), (2, "second"), (3, "third")))
    trace = make_trace(path, calls + "meta_end time=@4 reason=END_SIGNAL stop=@4\n", f"{GOLDEN}/stop.schema.json")
    locks = tables("report", trace, "locks")["locks"]
    sites = {r["name"]: r["site"] for r in locks}
    ok(sites == dict.fromkeys(("first", "second", "third"), "take+0x10 (first)"), "a call site has its name in each process", locks)
    osrt = tables("report", trace, "osrt")
    files = {r["file"]: r["calls"] for r in osrt["files"]}
    ok(files == {"/srv/file": 3}, "a file has its name in each process", osrt)


def main():
    library, why = trace_processor.library()
    check_recorded_once()
    for apart in (False, True):
        label = "in two chunks" if apart else "in one chunk"
        again, other = make(f"again{apart}", SECOND, apart), make(f"other{apart}", OTHER, apart)
        check_reports(again, other, label)
        check_filters(again, other)
        check_text(again, other, label)
        check_sqlite(again, other, label)
        check_chrome(again, other, label)
        if library:
            check_perfetto(library, again, other, label)
        else:
            skip(f"{label}: Perfetto", why)
    done()


main()
