#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=240 waits
"""The tables of a recording have bounds. tests/stress/memory.py records churn for an hour and checks the processes' memory; this test
records it for half a minute with small tables, and checks the sizes of the tables that are in the trace (meta_table).

Further, a recording that reaches its memory limit must end with a message and a complete trace, and reports of a recording that
evicted many entries must equal those of a recording that evicted none.
"""
import json
import mmap
import os
import re
import shutil
import subprocess
import time

ROOT, B, SONDE, TMP = (os.environ[n] for n in ("ROOT", "B", "SONDE", "TMPDIR"))
import proc_files
from sonde_cli import Sonde, tables as tables_of
from sonde_trace import Trace
from sparse_library import sparse_library
from tap import done, ok, skip
from waiting import wait_for

ROUNDS = 16
LOSS_BUDGET = 13  # enum loss_reason
BPFTOOL = "/usr/sbin/bpftool"
FAMILIES = "+sched,+syscall,+disk,+net,+lock,+python,+gpu"
# Tables with one entry per live object, which have no fixed bound
LIVE = {"processes with mapped code": 3000, "paths of mappings": 3000, "mappings of code": 100000}
# BPF maps from which processes and threads are removed when they end: entries left after the churn
ENDED = ("processes", "python_processes", "gil_ranges", "nccl_processes", "lock_libraries", "net_connections", "syscall_shorts",
         "disk_caches")
EVICTED = ("files with code", "files with probes", "native frames", "native functions", "Python functions", "Python code objects", "texts")
LEFT = 100  # entries of the machine's other processes with a runtime


def record(path, switches, *more):
    return Sonde(path, *more, mode=switches).process


def stop(child):
    child.send_signal(2)
    err = child.communicate()[1]
    return child.returncode, err


def tables(path):
    """{table: [events]}"""
    t, found = Trace(path), {}
    names = {e["string"]: e["text"] for e in t.events("meta_string")}
    for e in t.events("meta_table"):
        found.setdefault(names[e["table"]], []).append(e)
    return found


def kernel_tables(sonde):
    """{map: entries} of the hash maps that the programs of a recording use"""
    lines = [line for pid in (sonde, *proc_files.children(sonde)) for line in proc_files.fdinfo(pid)]
    programs, maps = {line.split()[1] for line in lines if line.startswith("prog_id:")}, set()

    def ask(*words):
        out = subprocess.run([BPFTOOL, "-j", *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        return json.loads(out or "[]")
    for p in ask("prog", "show"):
        if str(p["id"]) in programs:
            maps.update(p.get("map_ids", []))
    found = {}
    for m in ask("map", "show"):
        if m["id"] in maps and m.get("name") in ENDED:
            dumped = ask("map", "dump", "id", str(m["id"]))
            found[m["name"]] = len(dumped) if isinstance(dumped, list) else -1
    return found


def has_evicted(found):
    """True if a trace's tables lack what has ended"""
    last = {name: events[-1] for name, events in found.items()}
    return (all(name in last and last[name]["evicted"] for name in EVICTED) and last["files with probes"]["evicted"] >= ROUNDS and
            last["Python code objects"]["entries"] < 10)


def test_bounds():
    path = f"{TMP}/bounds.sonde"
    command = f"{ROOT}/tests/stress/churn.py {TMP} {ROUNDS}; exec sleep 1000"
    child = subprocess.Popen([SONDE, "record", "-f", "-o", path, "-t", FAMILIES, "-F", "99", "--off-cpu", "--cuda=stacks",
                              "--syscall-threshold", "100000", "--", "/bin/sh", "-c", command],
                             env=dict(os.environ, SONDE_TEST="small-tables"), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, universal_newlines=True)
    rounds = child.stdout.readline().strip()
    # it takes two scans, 5 s apart, to see that a deleted file is no longer mapped
    wait_for(lambda: has_evicted(tables(path)), pause=1)
    left = kernel_tables(child.pid)
    status, err = stop(child)
    ok(rounds == str(ROUNDS) and status == 128 + 2, f"recorded {ROUNDS} rounds of churn", f"{status}: {rounds} {err}")
    found = tables(path)
    # a Python code object is evicted when its epoch ends, 3 s after the table became too large
    over = {n: e["entries"] for n, list_ in found.items() for e in list_
            if e["entries"] > (e["max"] or LIVE.get(n, 1 << 40)) and n != "Python code objects"}
    ok(found and not over, "no table has more entries than its bound", over)
    for name in EVICTED:
        last = found.get(name, [{"evicted": 0}])[-1]
        ok(last["evicted"] > 0, f"{name}: unused entries are evicted", last)
    probed = found["files with probes"][-1]
    ok(probed["evicted"] >= ROUNDS, "deleted files have no probes left", probed)
    # all processes of the recording except two shells have ended
    codes = found["Python code objects"]
    ok(max(e["entries"] for e in codes) > 50 and codes[-1]["entries"] < 10, "code objects of ended processes are evicted",
       [e["entries"] for e in codes])
    memory = sum(e[-1]["bytes"] for n, e in found.items() if not re.match("[a-z]+_|heap", n))
    ok(memory < 64 << 20, "the tables take less than 64 MiB", memory)
    name = "what has ended is in none of the kernel's tables"
    if not os.path.exists(BPFTOOL):
        skip(name, "no bpftool")
    else:
        over = {n: entries for n, entries in left.items() if not 0 <= entries < LEFT}
        ok(len(left) > 5 and not over, name, f"{left}")


def test_limit():
    path = f"{TMP}/limit.sonde"
    child = record(path, "small-memory", "-t", "proc,sched", "--sched=all")
    try:
        err = child.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        err = stop(child)[1]
    ok(child.returncode == 1 and "MiB of memory, and ends before it runs out" in err,
       "a recording that reaches its memory limit ends with a message", f"{child.returncode}: {err}")
    info = subprocess.run([SONDE, "info", "--verify", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True)
    ok(info.returncode == 0 and len(list(Trace(path).events("meta_end"))) == 1, "its trace is complete", info.stdout)


def test_near_limit():
    """Near the memory limit known objects are not evicted every second, as each would be written to the trace again."""
    path, name = f"{TMP}/near.sonde", "what frees nothing is not done again each second"
    program = f"{TMP}/near-limit"
    shutil.copy("/bin/true", program)
    child = record(path, "near-memory", "-t", "proc")
    end = time.monotonic() + 5
    while time.monotonic() < end:
        subprocess.run([program], check=True)
        time.sleep(0.05)
    err = stop(child)[1]
    if "it frees its caches" not in err or "ends before it runs out" in err:
        skip(name, "the recording did not stay near its memory limit")
        return
    times = [e["text"] for e in Trace(path).events("meta_string")].count(program)
    ok(1 <= times <= 3, name, f"{program} is in the trace {times} times")


def test_sparse_files():
    path, maps = f"{TMP}/sparse.sonde", []
    for i, size in enumerate((1000 << 20, 1000 << 20, 100 << 20, 100 << 20, 100 << 20)):
        os.mkdir(f"{TMP}/{i}")
        sparse_library(f"{TMP}/{i}/libcudart.so.12", size)
    sonde = Sonde(path, "-t", "cuda")
    with open(f"/proc/{sonde.pid}/limits") as f:
        limit = re.search(r"^Max data size +(\d+)", f.read(), re.M)
    ok(limit and int(limit[1]) <= 1 << 30, "the kernel limits the memory of a file's parser to 1 GiB", limit and limit[0])
    for i in range(5):
        with open(f"{TMP}/{i}/libcudart.so.12", "rb") as f:
            maps.append(mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
    for _ in range(2):
        sonde.wait_for("leaves this file out: its tables exceed")
    status, err = sonde.end(), sonde.messages
    named = re.findall(r"libcudart.so.12: sonde leaves this file out: its tables exceed", err)
    lost = [e for e in Trace(path).events("meta_loss") if e["reason"] == LOSS_BUDGET]
    ok(len(named) >= 2 and len(lost) >= 2 and status == 3, "files that need too much memory are skipped, named, and in the trace",
       f"{status} {lost} {err}")
    peak = max(e["memory"] for e in Trace(path).events("meta_cost"))
    ok(peak < 500 << 20, "all processes together use less than 500 MiB", peak >> 20)


PROGRAM = """
import gc
gc.disable()
{functions}
for _ in range(10):
    for i in range({n}):
        globals()[f"f{{i}}"]()
"""


def collections(path):
    """({function name: garbage collections that it caused}, collections of each generation in the report). By name, as ids change."""
    t = Trace(path)
    names = {e["string"]: e["text"] for e in t.events("meta_string")}
    codes = {e["code"]: names.get(e["name"], "") for e in t.events("meta_code")}
    frames = {e["frame"]: codes.get(e["code"], "?") for e in t.events("meta_frame")}
    sums = {}
    for e in t.events("python_gc"):
        name = frames.get(e["stack"], "?")
        if re.match(r"f\d+$", name):
            sums[name] = sums.get(name, 0) + 1
    return sums, {r["generation"]: r["collections"] for r in tables_of("report", path, "gc")["generations"]}


def test_same_counts():
    """Records the same calls with large tables and with tables that evict constantly."""
    script, n, found = f"{TMP}/calls.py", 300, []
    with open(script, "w") as f:
        f.write(PROGRAM.format(n=n, functions="\n".join(f"def f{i}():\n    gc.collect(0)" for i in range(n))))
    for switches in ("", "small-tables"):
        path = f"{TMP}/same{len(found)}.sonde"
        done = subprocess.run([SONDE, "record", "-f", "-o", path, "-t", "proc,python", "--", "/usr/bin/python3", script],
                              env=dict(os.environ, SONDE_TEST=switches), stderr=subprocess.PIPE, universal_newlines=True)
        evicted = [tables(path)[t][-1]["evicted"] for t in ("texts", "Python functions")]
        found.append((done.returncode, *collections(path), evicted))
    (status, before, report, kept), (status2, after, report2, evicted) = found
    ok(status == status2 == 0 and not any(kept) and all(evicted), f"{n} functions ran in turn and were evicted",
       f"{status} {status2} {kept} {evicted}")
    ok(before == after == {f"f{i}": 10 for i in range(n)}, "each function has the same events", f"{len(before)} {len(after)}")
    ok(report == report2 and report.get(0, 0) >= 10 * n, "the reports are equal", f"{report} {report2}")


test_bounds()
test_limit()
test_near_limit()
test_sparse_files()
test_same_counts()
done()
