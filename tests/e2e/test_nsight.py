#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""Nsight Systems' tables in the SQLite export: the figures of reports of `nsys stats` by SQL are those of sonde's reports, on
synthetic GPU work (gpu_scene.py) with ranges of NVTX and system calls."""
import sqlite3

import gpu_scene
import nsight_reports
from export_lib import TMP, export, same
from tap import done, ok

TEXTS = {1: "step", 2: "loader", 3: "data"}


def add_ranges(scene):
    """Ranges around the launches of thread 101, in the default domain and in another one; one that another thread ends."""
    for number, text in TEXTS.items():
        scene.line("nvtx_text", time="@0", pid=100, number=number, text=f'"{text}"')
    for us, length, name, domain in ((0, 400, 1, 0), (20, 150, 1, 0), (0, 900, 2, 3)):
        scene.line("nvtx_range", pid=100, tid=101, start=scene.at(us), time=scene.at(us + length), name=name, domain=domain,
                   kind="NVTX_PUSHED", category=5, payload_kind="NVTX_INT32", payload=0xffffffff)
    scene.line("nvtx_range", pid=100, tid=101, start=scene.at(5), time=scene.at(60), name=3, kind="NVTX_STARTED", end_ns_tid=100)
    scene.line("nvtx_range", pid=100, tid=101, start=scene.at(2200), time=scene.at(2300), name=3, kind="NVTX_PUSHED", flags=1)
    scene.line("nvtx_mark", pid=100, tid=101, time=scene.at(9), name=1, domain=3)
    for i in range(7):
        scene.line("syscall", pid=100, tid=101, start=scene.at(i), time=scene.at(i + 0.5 + i / 10), nr=i % 2, ret=i)
    scene.line("syscall", pid=100, tid=101, start=scene.at(20), time=scene.at(30), nr=1, flags=1)


def check_rows(db):
    start = db.execute("SELECT value FROM sonde_info WHERE name = 'start'").fetchone()[0]
    got = db.execute("SELECT start, end, eventType, text, domainId, globalTid & 0xffffff, endGlobalTid & 0xffffff, category, int32Value "
                     "FROM NVTX_EVENTS ORDER BY start, eventType, text").fetchall()

    def at(us):
        return gpu_scene.Scene.at(us) - start

    same("NVTX_EVENTS", got, [(at(0), at(400), 59, "step", 0, 101, None, 5, -1), (at(0), at(900), 59, "loader", 1, 101, None, 5, -1),
                               (at(0), None, 75, "data", 1, 101, None, None, None), (at(5), at(60), 60, "data", 0, 101, 100, None, None),
                               (at(2200), None, 59, "data", 0, 101, None, None, None), (at(9), None, 34, "step", 1, 101, None, None, None),
                               (at(20), at(170), 59, "step", 0, 101, None, 5, -1)])
    for table, column in (("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"), ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"), ("OSRT_API", "nameId")):
        n = db.execute(f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT id FROM StringIds)").fetchone()[0]
        ok(n == 0, f"{table}: all names are in StringIds", n)
    gpus = db.execute("SELECT d.pid, d.cudaId, g.id, g.name FROM TARGET_INFO_CUDA_DEVICE d JOIN TARGET_INFO_GPU g ON g.id = d.gpuId "
                      "ORDER BY 1, 2").fetchall()
    ok(gpus == [(100, 0, 0, gpu_scene.MODEL), (100, 1, 1, gpu_scene.MODEL), (300, 0, 1, gpu_scene.MODEL)], "devices of processes", gpus)
    names = [r[0].lower() for r in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
    ok(len(names) == len(set(names)), "names of tables differ without regard to case")


def main():
    scene = gpu_scene.scene()
    add_ranges(scene)
    path, out = scene.write(TMP, "nsight"), TMP + "/nsight.sqlite"
    if export(path, "sqlite", out) is not None:
        check_rows(sqlite3.connect(out))
        db = nsight_reports.Database(out, path)
        db.kernels()
        db.trace_rows()
        db.memory()
        db.calls(alone="cuLaunchKernelEx")
        db.ranges()
        db.kernels_in_ranges()
        db.system_calls()
    done()


main()
