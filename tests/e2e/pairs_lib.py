# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""wrong(trace) lists the rows of reports in which a time and the count beside it are not those of the same waits or calls."""
from sonde_cli import tables

# report, table, time, count, mean: in every row with a mean, it is the time divided by the count
MEANS = [
    ("offcpu", "causes", "ns", "times", "avg_ns"),
    ("summary", "causes", "ns", "times", "avg_ns"),
    ("summary", "cuda_calls", "total_ns", "calls", "avg_ns"),
    ("cuda-api", "summary", "total_ns", "calls", "avg_ns"),
    ("cuda-api", "calls", "total_ns", "calls", "avg_ns"),
    ("osrt", "summary", "total_ns", "calls", "avg_ns"),
    ("locks", "locks", "total_ns", "episodes", "avg_ns"),
]
# a time needs a count, and a count a time
BOTH = [(r, t, ns, n) for r, t, ns, n, _ in MEANS] + [
    ("osrt", "threads", "total_ns", "calls"),
    ("osrt", "files", "total_ns", "calls"),
    ("gil", "interpreters", "wait_ns", "waits"),
    ("gil", "threads", "wait_ns", "waits"),
    ("summary", "processes", "gil_wait_ns", "gil_waits"),
    ("offcpu", "waits", "wait_ns", "waits"),
]


def wrong(trace):
    found = {r: tables("report", trace, r) for r in {m[0] for m in BOTH}}
    bad = []
    for report, table, ns, count, mean in MEANS:
        for row in found[report].get(table, []):
            if row.get(mean) is not None and abs(row[mean] * row[count] - row[ns]) > 1e-6 * max(row[ns], 1):
                bad.append((report, table, "mean", row))
    for report, table, ns, count in BOTH:
        for row in found[report].get(table, []):
            if bool(row[ns]) > bool(row[count]):
                bad.append((report, table, "no count", row))
    return bad + wrong_causes(found["offcpu"])


def wrong_causes(offcpu):
    """
    The main part of a cause is at most the cause, and is the sum of the rows of its threads: their waits, and at most the time after these in
    which the threads were runnable.
    """
    bad, runnable = [], {(t["pid"], t["tid"]): t["runnable_ns"] for t in offcpu["threads"]}
    for row in offcpu["causes"]:
        if row["what"] is None:
            continue
        of = [w for w in offcpu["waits"] if (w["pid"], w["reason"]) == (row["pid"], row["what"])]
        if row["what_ns"] > row["ns"] or row["what_times"] > row["times"]:
            bad.append(("more than all of it", row))
        ns, after = sum(w["wait_ns"] for w in of), sum(runnable[w["pid"], w["tid"]] for w in of)
        if len(of) == row["threads"] and row["cause"] not in ("disk", "peer", "idle") and (
                not ns <= row["what_ns"] <= ns + after or sum(w["waits"] for w in of) != row["what_times"]):
            bad.append(("not its threads' sum", row, of))
    return bad
