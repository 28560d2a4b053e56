#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=180
"""`sonde diff`: a function that became twice as slow by its own clock, two runs without a difference, and what it refuses."""
import math
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from diff_lib import PACED, SONDE, compare, folder, record, say, write_program
import bounds
from sonde_trace import Trace
from tap import done, ok, skip_all

SECONDS = 6


def row_of(result, table, **fields):
    return next((r for r in result["tables"][table] if all(r[k] == v for k, v in fields.items())), {})


def check_slower(before, after, said):
    """The function that became slower, and the shares of both functions before and after, against the program's own clock"""
    result = compare(before, after)
    texts = [f["text"] for f in result["findings"]]
    row = row_of(result, "functions", process="paced.py", function="work (paced.py)")
    ok(row.get("change") == "slower" and math.isclose(row["factor"], row["after_percent"] / row["before_percent"], rel_tol=1e-6),
       "the function that became slower, and by how much", str(row))
    ok(texts and texts[0].startswith("work (paced.py) of paced.py ran on a CPU "), "it is in the first line", *texts)
    for when, trace, out in zip(("before", "after"), (before, after), said):
        samples = sum(1 for _ in Trace(trace).events("sample_cpu"))
        rows = [r for r in result["tables"]["functions"] if r["process"] == "paced.py"]
        in_work, in_other, all_ = map(int, out.split())
        for function, ns in (("work", in_work), ("other", in_other)):
            share = row_of(result, "functions", process="paced.py", function=f"{function} (paced.py)").get(f"{when}_percent", 0)
            bounds.share(f"{function}, {when}: its share of the CPU time", share / sum(r[f"{when}_percent"] or 0 for r in rows), ns / all_, samples)
    back = compare(after, before)
    row = row_of(back, "functions", process="paced.py", function="work (paced.py)")
    ok(row.get("change") == "faster", "and the other way round it became faster", str(row))


def check_equal(before, after):
    """In 5% of all pairs of equal runs a figure differs by chance, which tests/unit/diff_noise.c judges by thousands of pairs."""
    result = compare(before, after)
    texts = [f["text"] for f in result["findings"]]
    changes = [r for t in result["tables"].values() for r in t if r["change"]]
    ok(texts[0].startswith("No difference exceeds the noise") == (not changes), "two equal runs: the first line and the tables agree", *texts, *changes)
    ok(row_of(result, "functions", function="work (paced.py)"), "and the function was compared")


def check_formats(before, after):
    people, rows = say("diff", before, after), say("diff", before, after, "--format", "csv")
    ok("before: no losses recorded" in people or "before: lost" in people, "what each trace lacks is said of each", people[-600:])
    ok("# functions" in rows and "\nprocess,function,before_percent," in rows, "CSV has the tables", rows[:600])
    result = compare(before, after)
    ok(result["report"] == "diff" and result["before"]["trace"]["file"] == before and result["after"]["trace"]["file"] == after,
       "JSON has both traces", str(result["before"])[:300])
    once = say("diff", before, "--before", "0..1.5", "--after", "1.5..3")
    ok("Compared: " in once, "two times of one trace", once[:400])


def fails(status, text, name, *args):
    r = subprocess.run([SONDE, "diff", *args], capture_output=True, text=True, check=False)
    ok(r.returncode == status and text in r.stderr and not r.stdout, name, f"{r.returncode} {r.stderr}")


def check_errors(tmp, trace):
    text, short = os.path.join(tmp, "text.sonde"), os.path.join(tmp, "short.sonde")
    with open(text, "w") as f:
        f.write("no trace at all, only a text that is long enough\n" * 10)
    fails(1, "not a sonde trace", "a foreign file", trace, text)
    fails(1, "no such file", "a file that is not there", os.path.join(tmp, "none.sonde"), trace)
    fails(2, "which traces", "no trace")
    fails(2, "--before", "one trace without times", trace)
    fails(2, "two traces", "three traces", trace, trace, trace)
    fails(2, "no table of diff has a column", "a column that is not there", trace, trace, "--sort", "nothing")
    fails(2, "", "an option that is not there", trace, trace, "--time", "1..2")
    shutil.copy(trace, short)
    os.truncate(short, os.path.getsize(trace) - 20)
    people = say("diff", trace, short)
    ok("after: The trace was cut off" in people, "of a truncated file what is lost is said", people[-600:])


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError as e:
        skip_all(f"no real-time scheduling here: {e}")
    tmp = folder()
    script = write_program(tmp, "paced.py", PACED)
    # shares of thousands of samples are known to within 4 points
    fine = ("-F", "1999")
    (one, said), (two, _), (slow, said_slow) = (record(tmp, name, script, ms, SECONDS, options=fine) for name, ms in (("one", 10), ("two", 10), ("slow", 20)))
    check_equal(one, two)
    check_slower(one, slow, (said, said_slow))
    check_formats(one, slow)
    check_errors(tmp, one)
    shutil.rmtree(tmp)
    done()


main()
