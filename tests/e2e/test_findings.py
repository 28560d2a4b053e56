#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel
"""The sentences at the top of a report: the same in every format, with their figures; and which flags would show more."""
import csv
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import done, ok

ROOT, B, SONDE = (os.environ[n] for n in ("ROOT", "B", "SONDE"))
GOLDEN = os.path.join(ROOT, "tests", "golden")


def say(*args):
    return subprocess.run([SONDE, *args], capture_output=True, text=True, check=True).stdout


def make(folder, name, events, schema, *families):
    path = os.path.join(folder, name + ".sonde")
    subprocess.run([os.path.join(B, "tests", "golden", "make_trace"), os.path.join(GOLDEN, schema), events, path, *families],
                   check=True)
    return path


def golden(folder, name):
    own = name + ".schema.json"
    return make(folder, name, os.path.join(GOLDEN, name + ".events"),
                own if os.path.exists(os.path.join(GOLDEN, own)) else "schema.json")


def tables_of(text):
    """{table: rows with the header} of CSV: what is no comment, by the comment before it that names it"""
    found, rows = {}, None
    for line in text.splitlines():
        if not line.startswith("#"):
            rows.append(next(csv.reader([line])))
        elif " " not in line[2:] and ":" not in line:
            rows = found.setdefault(line[2:], [])
    return found


def check_formats(path, report):
    people = say("report", path, report).splitlines()
    root = json.loads(say("report", path, report, "--format", "json"))
    texts = [f["text"] for f in root["findings"]]
    comments = say("report", path, report, "--format", "csv")
    head = [line[len("# finding: "):] for line in comments.splitlines() if line.startswith("# finding: ")]
    notes = [line[len("# note: "):] for line in comments.splitlines() if line.startswith("# note: ")]
    plain = all(f == f.encode("ascii", "ignore").decode() and "\x1b" not in f for f in texts)
    tables = tables_of(comments)
    bad = [t for t in tables if len({len(r) for r in tables[t]}) != 1 or len(tables[t]) != 1 + len(root["tables"][t])]
    if plain and texts != people[:len(texts)]:
        bad.append((texts, people[:len(texts)]))
    if len(head) != len(texts) or len(notes) != len(root["notes"]) or set(tables) != set(root["tables"]) or (plain and head != texts):
        bad.append((head, texts, list(tables)))
    if not all(isinstance(f["figures"], dict) for f in root["findings"]):
        bad.append(root["findings"])
    return bad, root


with tempfile.TemporaryDirectory() as there:
    reports = [r["name"] for r in json.loads(say("list", "reports", "--format", "json"))["tables"]["reports"]]
    for name in ("run", "os", "convoy", "idle", "disk", "nccl"):
        trace = golden(there, name)
        wrong = {r: check_formats(trace, r)[0] for r in reports}
        wrong = {r: w for r, w in wrong.items() if w}
        ok(not wrong, f"{name}: {len(reports)} reports: findings and notes are in JSON and in comments of the CSV", wrong)
    root = check_formats(golden(there, "convoy"), "offcpu")[1]
    figures, row = root["findings"][0]["figures"], root["tables"]["causes"][0]
    ok(all(figures[k] == row[k] for k in ("pid", "cause", "ns", "percent", "threads", "times", "what", "what_ns", "what_times")),
       "a finding's figures are those of its row", (figures, row))
    root = check_formats(golden(there, "run"), "gil")[1]
    ok(any(f["figures"].get("waits") == 5 and f["figures"].get("pid") == 4711 for f in root["findings"]),
       "report gil has them too", root["findings"])

    # a process with a runtime that does nothing that is recorded by default
    events = os.path.join(there, "mute.events")
    with open(events, "w") as f:
        f.write('proc_task time=@0 pid=10 tid=10 ppid=1 comm="server"\n'
                'proc_map time=@0 pid=10 tid=10 path="/usr/bin/python3.11"\n'
                "meta_end time=@8 reason=END_SIGNAL\n")
    lines = say("report", make(there, "mute", events, "schema.json", "proc,cuda,gil,nccl")).splitlines()
    ok(sum("`sonde record -t +sched,syscall,lock` shows what its threads waited for, `-F 99` where they ran." in line
           for line in lines) == 1 and lines[0].startswith("What server 10 did in 100% of 8.000 s was not recorded"),
       "without family sched it is said which flags show more", lines[:4])
    with open(events, "a") as f:
        f.write("sched_run pid=10 tid=10 start=@1 time=@7 state=SCHED_SLEEP\n")
    lines = say("report", make(there, "busy", events, "schema.json", "proc,gil,sched")).splitlines()
    ok(any(line == "server 10 ran for 75% of 8.000 s: `sonde record -F 99` shows in which functions." for line in lines),
       "with it, how to see where it ran", lines[:6])
    lines = say("report", make(there, "sampled", events, "schema.json", "proc,gil,sched,sample")).splitlines()
    ok(not any("sonde record" in line for line in lines), "and nothing of what was recorded", lines[:6])
    ok(lines.index("8.000 s of 1 process.") > 0, "the count of processes is not the first line", lines[:3])
done()
