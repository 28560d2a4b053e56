#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=180
"""`sonde diff`: a function that became twice as slow by its own clock, two runs without a difference, and what it refuses."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from diff_lib import PACED, SONDE, compare, folder, record, say, write_program
from tap import done, ok, skip_all

SECONDS = float(os.environ.get("DIFF_SECONDS", 3))
PAIRS = int(os.environ.get("DIFF_PAIRS", 2))  # of runs without a difference


def row_of(result, table, **fields):
    return next((r for r in result["tables"][table] if all(r[k] == v for k, v in fields.items())), {})


def check_slower(before, after, truth):
    """The function, by how much, and nothing else that became slower"""
    result = compare(before, after)
    texts = [f["text"] for f in result["findings"]]
    row = row_of(result, "functions", process="paced.py", function="work (paced.py)")
    factor = row.get("factor") or 0
    ok(row.get("change") == "slower" and abs(factor / truth - 1) < 0.1, "the function that became slower, and by how much",
       f"{factor:.3f} times, by its own clock {truth:.3f}")
    ok(texts and texts[0].startswith("work (paced.py) of paced.py ran on a CPU "), "it is in the first line", *texts)
    other = row_of(result, "functions", process="paced.py", function="other (paced.py)")
    ok(other and not other["change"], "the other function did not change", str(other))
    back = compare(after, before)
    row = row_of(back, "functions", process="paced.py", function="work (paced.py)")
    ok(row.get("change") == "faster", "and the other way round it became faster", str(row))


def check_equal(traces):
    """Of pairs of equal runs one may differ: the interval of noise has a probability of 95%."""
    found = []
    for before, after in zip(traces, traces[1:]):
        result = compare(before, after)
        texts = [f["text"] for f in result["findings"]]
        changes = [r for t in result["tables"].values() for r in t if r["change"]]
        none = texts[0].startswith("No difference exceeds the noise")
        ok(none == (not changes), "two equal runs: the first line and the tables agree", *texts, *changes)
        ok(row_of(result, "functions", function="work (paced.py)"), "and the function was compared")
        found += [] if none else texts
    ok(len(found) <= 1, f"{len(traces) - 1} pairs of equal runs: no change, in one pair at most one", *found)


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
    fine = ("-F", "499")
    runs = [record(tmp, f"equal{i}", script, 10, SECONDS, options=fine) for i in range(PAIRS + 2)]
    slow = record(tmp, "slow", script, 20, SECONDS, options=fine)
    check_equal([path for path, _ in runs])
    check_slower(runs[0][0], slow[0], float(slow[1].split()[0]) / float(runs[0][1].split()[0]))
    check_formats(runs[0][0], slow[0])
    check_errors(tmp, runs[0][0])
    shutil.rmtree(tmp)
    done()


main()
