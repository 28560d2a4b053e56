#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Pids are reused: each process has a row of its own, under its own parent."""
import os
import sqlite3
import subprocess
import time

import stacks_lib
from sonde_cli import make_trace, tables
from tap import done, ok

SONDE, TMP = os.environ["SONDE"], os.environ["TMPDIR"]


def text_event(*args, text):
    e = stacks_lib.event(*args)
    next(f for f in e["fields"] if f["name"] == text)["type"] = "text"
    return e


SCHEMA = {
    "families": [{"id": 0, "name": "core"}, {"id": 1, "name": "proc"}], "options": [], "enums": [],
    "events": [
        stacks_lib.event("meta_string", 0x0001, [("string", 4, "")], tail="text"),
        text_event("proc_task", 0x0101, [("ppid", 4, "task"), ("ns_pid", 4, ""), ("comm", 16, "")], text="comm"),
        text_event("proc_fork", 0x0102, [("child_pid", 4, "task"), ("child_tid", 4, "task"), ("comm", 16, "")], text="comm"),
        text_event("proc_exec", 0x0103, [("comm", 16, "")], text="comm"),
        stacks_lib.event("proc_exit", 0x0104, [("code", 4, "")]),
    ]}


def make(name, lines):
    return make_trace(os.path.join(TMP, name), lines, SCHEMA)


def report(path, *args):
    return tables("report", path, *args)["processes"]


def fork(at, parent, child, comm):
    return f'proc_fork time=@{at:.6f} pid={parent} tid={parent} child_pid={child} child_tid={child} comm="{comm}"'


def three_with_one_number():
    """The exits follow all forks, as they do within one chunk."""
    path = make("three", [
        'proc_task time=@0 pid=100 tid=100 ppid=1 comm="server"',
        fork(1, 100, 200, "first"), fork(1.2, 200, 300, "of-first"),
        fork(2, 100, 200, "second"), fork(2.2, 200, 301, "of-second"),
        fork(3, 300, 200, "third"),
        'proc_exec time=@2.1 pid=200 tid=200 comm="second-exec"',
        *(f"proc_exit time=@{at} pid={pid} tid={pid} code=0" for at, pid in (("1.5", 200), ("2.5", 200), ("3.5", 200))),
    ])
    rows = report(path, "processes")
    got = [(r["pid"], r["name"].strip(), r["depth"], r["start_ns"], r["end_ns"]) for r in rows]
    expected = [(100, "server", 0, None, None),
              (200, "first", 1, 1000000000, 1500000000), (300, "of-first", 2, 1200000000, None),
              (200, "third", 3, 3000000000, 3500000000),
              (200, "second-exec", 1, 2000000000, 2500000000), (301, "of-second", 2, 2200000000, None)]
    ok(sorted(got, key=str) == sorted(expected, key=str), "three processes with one pid have three rows, each with its own times",
       got)
    order = [x[1] for x in got]
    ok(order.index("third") == order.index("of-first") + 1 and order.index("of-second") == order.index("second-exec") + 1,
       "each is under its own parent", got)
    rows = report(path, "summary")
    ok(sorted((r["name"], r["start_ns"]) for r in rows if r["pid"] == 200) ==
       [("first", 1000000000), ("second-exec", 2000000000), ("third", 3000000000)], "also in the summary", rows)
    out = os.path.join(TMP, "three.db")
    subprocess.run([SONDE, "export", path, "--to", "sqlite", "-f", "-o", out], check=True)
    got = sqlite3.connect(out).execute("SELECT count(*), count(DISTINCT start) FROM sonde_processes WHERE pid = 200").fetchone()
    ok(got == (3, 3), "also in SQLite's table processes", got)


def snapshot_and_fork():
    """The initial snapshot may have a child before its fork is recorded, and an exec may be read before the fork: it is one process."""
    path = make("snapshot", [
        'proc_task time=@1.000100 pid=200 tid=200 ppid=100 comm="child"', "flush", fork(1.0002, 100, 200, "child"),
        'proc_exec time=@2 pid=201 tid=201 comm="program"', "flush", fork(1.9, 100, 201, "child"),
    ])
    got = sorted((r["pid"], r["name"].strip(), r["start_ns"]) for r in report(path, "processes"))
    ok(got == [(200, "child", 1000200000), (201, "program", 1900000000)], "events out of order belong to one process", got)


def many():
    """All 32,767 pids are used twice, by one parent: each process has a row, in time linear in their number."""
    n = 65000
    lines = ['proc_task time=@0 pid=1 tid=1 ppid=0 comm="init"']
    for i in range(n):
        pid, at = 2 + i % 32500, 1 + i * 0.0001
        lines.append(fork(at, 1, pid, "true"))
        lines.append(f"proc_exit time=@{at + 0.00005:.6f} pid={pid} tid={pid} code=0")
        if i % 5000 == 4999:
            lines.append("flush")
    path = make("many", lines)
    began = time.process_time()
    rows = report(path, "processes")
    ok(len(rows) == n + 1, f"{n} processes with 32,500 pids have {n} rows",
       f"{len(rows)} in {time.process_time() - began} s")
    ok(all(r["end_ns"] is not None and 0 < r["end_ns"] - r["start_ns"] <= 50000 for r in rows if r["pid"] > 1),
       "each has its own end", rows[:5])


three_with_one_number()
snapshot_and_fork()
many()
done()
