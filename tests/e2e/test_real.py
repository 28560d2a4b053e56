#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120
"""sonde's counts of real programs are compared with the programs' own. tests/real/run installs the programs."""
import importlib.machinery
import importlib.util
import os
import re
import sys
import tempfile
import time

from puppet import ROOT, TMP
from sonde_cli import tables
from sonde_trace import Trace
from tap import done, ok, skip

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("real", os.path.join(ROOT, "tests/real/run"))
real = importlib.util.module_from_spec(importlib.util.spec_from_loader("real", loader))
loader.exec_module(real)
FAMILY_DISK = 0x08  # bpf/probes/disk/disk.h
TRACE = os.path.join(TMP, "real.sonde")


def report(name):
    return tables("report", TRACE, name)


def near(a, b, part):
    return b > 0 and abs(a - b) <= part * b


def lost():
    """Lost records, without the ends of block requests for which the kernel runs no program (docs/disk.md), if these are at most 5%; 1.4%
    were seen on a busy machine."""
    trace = Trace(TRACE)
    losses = [e for e in trace.events("meta_loss") if e["reason_name"] != "LOSS_ATTACH_GAP"]
    unseen = [e for e in losses if (e["family"], e["reason_name"]) == (FAMILY_DISK, "LOSS_RETURN")]
    requests = sum(1 for _ in trace.events("disk_io")) if unseen else 0
    return [e for e in losses if e not in unseen or sum(u["count"] for u in unseen) > requests / 20]


def record(program, families, work):
    recording = real.Recording(program.pids(), TRACE, families)
    work()
    status, said = recording.end()
    ok(status == 0 and not lost(), f"{program.name}: recorded, nothing lost", f"{lost()}\n{said}")


def redis(tmp):
    program = real.Redis(tmp)
    keys = ("total_net_input_bytes", "total_net_output_bytes", "total_reads_processed", "total_connections_received")
    try:
        before = program.info()
        record(program, "+sched,syscall,net", lambda: real.run("redis-benchmark", "-p", program.port, "-t", "set,get", "-n", "8000",
                                                              "-c", "10", "-q"))
        after = program.info()
    finally:
        program.stop()
    got, sent, reads, made = (int(re.search(rf"^{k}:(\d+)", after, re.M)[1]) - int(re.search(rf"^{k}:(\d+)", before, re.M)[1])
                              for k in keys)
    # the first answer was sent after it was counted and before tracing began
    sent -= len(before)
    peers = report("net")["peers"]
    traced = [sum(p[c] or 0 for p in peers) for c in ("received_bytes", "sent_bytes", "connections")]
    ok(near(traced[0], got, 0.01) and near(traced[1], sent, 0.01), "redis: its bytes by TCP, within 1%",
       f"{traced} {got} {sent}")
    # redis-cli connected too, before and after
    ok(made - 2 <= traced[2] <= made, f"redis: its {made} connections", traced)
    calls = sum(row["calls"] for row in report("osrt")["summary"] if row["name"] == "read")
    ok(near(calls, reads, 0.02), "redis: its reads, within 2%", f"{calls} {reads}")
    threads = report("sched")["threads"]
    ok(any(t["run_ns"] > 0 and t["pid"] == program.server.pid for t in threads), "redis: -p alone records its scheduling", threads)


def postgres(tmp):
    program = real.Postgres(tmp)
    try:
        time.sleep(1.5)
        before = int(program.sql("select wal_sync from pg_stat_wal"))
        record(program, "+syscall,disk", lambda: program.as_user("pgbench", "-h", program.dir, "-p", program.port, "-c", "4", "-t", "200",
                                                                "-n", "postgres"))
        # processes report their counts once a second
        time.sleep(1.5)
        synced = int(program.sql("select wal_sync from pg_stat_wal")) - before
    finally:
        program.stop()
    calls = sum(row["calls"] for row in report("osrt")["files"] if row["name"] == "fdatasync" and "/pg_wal/" in (row["file"] or ""))
    ok(near(calls, synced, 0.05), "postgres: the syncs of its log, within 5%", f"{calls} {synced}")
    flushes = sum(row["ios"] for row in report("disk")["ios"] if row["op"] in ("flush", "write"))
    ok(flushes >= 0.9 * calls, "postgres: each sync sent a request to the disk", f"{flushes} {calls}")


for program, test in ((real.Redis, redis), (real.Postgres, postgres)):
    if os.geteuid():
        skip(program.name, "tracing needs root")
    elif not program.there():
        skip(program.name, "it is not installed: run tests/real/run")
    else:
        with tempfile.TemporaryDirectory(prefix="sonde-real-", dir="/tmp") as folder:
            test(folder)
done()
