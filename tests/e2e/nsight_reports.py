# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What reports of `nsys stats` read from Nsight Systems' tables, by joins of their own, compared with sonde's reports."""
import sqlite3
import statistics

from sonde_cli import tables
from tap import ok

EVER = ["--time", "0..1000"]  # exports have what was recorded before and after the traced time, too
NAMES = "WITH named AS (SELECT k.*, d.value AS name FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds d ON d.id = k.demangledName)"
CALLED = "JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND r.globalTid & 0xFFFFFFFFFF000000 = k.globalPid"
OPERATIONS = """WITH moved AS (
    SELECT '[CUDA memcpy ' || e.label || ']' AS name, m.start, m.end, m.bytes
    FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN ENUM_CUDA_MEMCPY_OPER e ON e.id = m.copyKind
    UNION ALL SELECT '[CUDA memset]', start, end, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET)"""
DOMAINS = """domains AS (SELECT domainId, globalTid >> 24 & 0xffffff AS pid, text FROM NVTX_EVENTS WHERE eventType = 75),
    ranges AS (SELECT n.*, coalesce(d.text || ':', '') || coalesce(n.text, s.value, '') AS name,
                      CASE n.eventType WHEN 59 THEN 'PushPop' ELSE 'StartEnd' END AS style
               FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId
                    LEFT JOIN domains d ON d.domainId = n.domainId AND d.pid = n.globalTid >> 24 & 0xffffff
               WHERE n.eventType IN (59, 60) AND n.end IS NOT NULL)"""


class Median:
    def __init__(self):
        self.values = []

    def step(self, value):
        if value is not None:
            self.values.append(value)

    def finalize(self):
        return statistics.median(self.values) if self.values else None


class Deviation(Median):
    def finalize(self):
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0


def spread(what):
    return f"avg({what}), median({what}), min({what}), max({what}), stdev({what})"


def stats(what):
    return f"count({what}), sum({what}), {spread(what)}"


def keys(prefix, unit="ns"):
    return [f"{prefix}{x}_{unit}" for x in ("avg", "median", "min", "max", "stddev")]


def rounded(rows):
    return sorted((tuple(float(f"{v:.9g}") if isinstance(v, (int, float)) else v for v in r) for r in rows), key=repr)


class Database:
    def __init__(self, path, trace):
        self.db, self.trace = sqlite3.connect(path), trace
        self.db.create_aggregate("median", 1, Median)
        self.db.create_aggregate("stdev", 1, Deviation)

    def compare(self, name, sql, report, table, columns, where=lambda row: True):
        """The rows of the SQL are the columns of a table of sonde's report."""
        got = rounded(self.db.execute(sql))
        want = rounded([row[c] for c in columns] for row in tables("report", self.trace, report, *EVER)[table] if where(row))
        ok(got == want and got, f"nsys {name}: {len(got)} rows as in report {report}",
           [r for r in got if r not in want][:3] + ["--"] + [r for r in want if r not in got][:3])

    def kernels(self):
        columns = ["name", "instances", "total_ns", *keys("")]
        for column, key in (("demangledName", "name"), ("mangledName", "mangled_name")):
            self.compare(f"cuda_gpu_kern_sum ({column})", f"SELECT s.value, {stats('k.end - k.start')} FROM CUPTI_ACTIVITY_KIND_KERNEL "
                         f"k JOIN StringIds s ON s.id = k.{column} GROUP BY 1", "cuda-kern", "summary", [key, *columns[1:]])
        self.compare("cuda_kern_exec_sum", f"{NAMES} SELECT r.globalTid >> 24 & 0xffffff, r.globalTid & 0xffffff, deviceId, count(*), "
                     f"{spread('max(r.end, k.end) - r.start')}, {spread('r.end - r.start')}, {spread('k.end - k.start')}, s.value, name "
                     f"FROM named k {CALLED} JOIN StringIds s ON s.id = r.nameId GROUP BY 1, 2, 3, s.value, name", "cuda-kern-launch", "summary",
                     ["pid", "tid", "device", "count", *keys("total_"), *keys("api_"), *keys("kernel_"), "api", "name"])

    def trace_rows(self):
        """Reports cuda_gpu_trace, cuda_kern_exec_trace and cuda_gpu_kern_gb_sum have what each row of cuda-trace has."""
        gpu = "printf('%s (%d)', g.name, k.deviceId), contextId, streamId"
        at = "LEFT JOIN TARGET_INFO_GPU g ON g.id = k.deviceId"
        self.compare("cuda_gpu_trace", f"{NAMES} SELECT start, end - start, correlationId, gridX, gridY, gridZ, blockX, blockY, blockZ, "
                     f"registersPerThread, staticSharedMemory, dynamicSharedMemory, NULL, NULL, NULL, {gpu}, k.name FROM named k {at} "
                     "UNION ALL SELECT start, end - start, correlationId, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, bytes, "
                     f"a.label, b.label, {gpu}, '[CUDA memcpy ' || e.label || ']' FROM CUPTI_ACTIVITY_KIND_MEMCPY k JOIN ENUM_CUDA_MEMCPY_OPER e "
                     f"ON e.id = copyKind JOIN ENUM_CUDA_MEM_KIND a ON a.id = srcKind JOIN ENUM_CUDA_MEM_KIND b ON b.id = dstKind {at} "
                     "UNION ALL SELECT start, end - start, correlationId, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, bytes, "
                     f"NULL, b.label, {gpu}, '[CUDA memset]' FROM CUPTI_ACTIVITY_KIND_MEMSET k JOIN ENUM_CUDA_MEM_KIND b "
                     f"ON b.id = memKind {at}", "cuda-trace", "trace",
                     ["start_ns", "duration_ns", "correlation", *(f"{d}_{a}" for d in ("grid", "block") for a in "xyz"), "registers",
                      "static_shared_bytes", "dynamic_shared_bytes", "bytes", "from_memory", "to_memory", "device", "context", "stream",
                      "name"], lambda row: not row["only_by_calls"] and not row["open"] and row["name"] != "[CUDA graph]")
        self.compare("cuda_kern_exec_trace", f"{NAMES} SELECT r.start, r.end - r.start, max(k.start - r.end, 0), k.start, k.end - k.start, "
                     f"r.globalTid & 0xffffff, s.value, name FROM named k {CALLED} JOIN StringIds s ON s.id = r.nameId",
                     "cuda-trace", "trace",
                     ["launch_start_ns", "launch_ns", "queued_ns", "start_ns", "duration_ns", "tid", "api", "name"],
                     lambda row: row["registers"] is not None and row["api"] and not row["only_by_calls"] and not row["open"])
        shapes = {}
        for row in tables("report", self.trace, "cuda-trace", *EVER)["trace"]:
            if row["registers"] is not None and not row["only_by_calls"] and not row["open"]:
                key = (row["name"], *(row[f"{d}_{a}"] for d in ("grid", "block") for a in "xyz"))
                shapes.setdefault(key, []).append(row["duration_ns"])
        got = rounded(self.db.execute(f"{NAMES} SELECT name, gridX, gridY, gridZ, blockX, blockY, blockZ, count(*), sum(end - start), "
                                      "median(end - start) FROM named GROUP BY 1, 2, 3, 4, 5, 6, 7"))
        ok(got == rounded((*k, len(v), sum(v), statistics.median(v)) for k, v in shapes.items()) and got,
           f"nsys cuda_gpu_kern_gb_sum: {len(got)} rows as in report cuda-trace")

    def memory(self):
        self.compare("cuda_gpu_mem_time_sum", f"{OPERATIONS} SELECT name, {stats('end - start')} FROM moved GROUP BY 1",
                     "cuda-mem-time", "summary", ["operation", "count", "total_ns", *keys("")])
        self.compare("cuda_gpu_mem_size_sum", f"{OPERATIONS} SELECT name, {stats('bytes')} FROM moved GROUP BY 1", "cuda-mem-size",
                     "summary", ["operation", "count", "total_bytes", *keys("", "bytes")], lambda row: not row["only_by_calls"])

    def calls(self, alone=""):
        """alone: a function that only CUPTI recorded, which report cuda-api lacks"""
        where = f"WHERE s.value != '{alone}'"
        self.compare("cuda_api_sum", f"SELECT s.value, {stats('r.end - r.start')} FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s "
                     f"ON s.id = r.nameId {where} GROUP BY 1", "cuda-api", "summary", ["name", "calls", "total_ns", *keys("")])
        self.compare("cuda_api_trace", "SELECT r.globalTid >> 24 & 0xffffff, r.globalTid & 0xffffff, s.value, returnValue, count(*) FROM "
                     f"CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId {where} GROUP BY 1, 2, 3, 4", "cuda-api", "returns",
                     ["pid", "tid", "name", "ret", "calls"])
        got = self.db.execute("SELECT count(*), count(correlationId), count(DISTINCT correlationId || ' ' || (globalTid >> 24)) FROM "
                              "CUPTI_ACTIVITY_KIND_RUNTIME").fetchone()
        ok(got[0] == got[1] == got[2], f"each of {got[0]} calls has a correlation id of its own", got)

    def ranges(self):
        self.compare("nvtx_sum", f"WITH {DOMAINS} SELECT name, style, {stats('end - start')} FROM ranges GROUP BY 1, 2", "nvtx", "ranges",
                     ["range", "style", "instances", "total_ns", *keys("")], lambda row: row["avg_ns"] is not None)

    def kernels_in_ranges(self):
        """nsys counts a kernel in each range around its launch, sonde in the innermost one: this takes the innermost of nsys's join."""
        self.compare("nvtx_kern_sum", f"{NAMES}, {DOMAINS}, inside AS (SELECT n.name AS range, style, r.globalTid AS tid, n.eventId, k.end "
                     "- k.start AS ns, k.name, row_number() OVER (PARTITION BY k.deviceId, k.streamId, k.start ORDER BY n.start DESC, n.end) "
                     f"AS depth FROM named k {CALLED} JOIN ranges n ON n.globalTid = r.globalTid AND n.start <= r.start AND n.end >= r.end "
                     f"AND n.endGlobalTid IS NULL) SELECT range, style, tid >> 24 & 0xffffff, tid & 0xffffff, {stats('ns')}, name "
                     "FROM inside WHERE depth = 1 GROUP BY range, style, tid, name", "nvtx-kern", "kernels",
                     ["range", "style", "pid", "tid", "kernels", "total_ns", *keys(""), "name"], lambda row: row["style"] == "PushPop")

    def system_calls(self):
        self.compare("osrt_sum", f"SELECT s.value, {stats('o.end - o.start')} FROM OSRT_API o JOIN StringIds s ON s.id = o.nameId WHERE "
                     "eventClass = 27 GROUP BY 1", "osrt", "summary", ["name", "calls", "total_ns", *keys("")])
