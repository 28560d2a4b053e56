#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""The findings at the top of a report: they are the same in every format, have their figures, and name the flags that show more."""
import csv
import json
import os
import subprocess
import tempfile

from cards import card_of, cards
from planted import GOLDEN, first_of, make, merged_schema, say, written
from tap import done, ok


def golden(folder, name):
    own = name + ".schema.json"
    with open(os.path.join(GOLDEN, name + ".events")) as f:
        return make(folder, name, f.read(), own if os.path.exists(os.path.join(GOLDEN, own)) else "schema.json")


def tables_of(text):
    """{table: rows with the header} of CSV output, in which a comment with its name precedes each table"""
    found, rows = {}, None
    for line in text.splitlines():
        if not line.startswith("#"):
            rows.append(next(csv.reader([line])))
        elif " " not in line[2:] and ":" not in line:
            rows = found.setdefault(line[2:], [])
    return found


def check_formats(path, report):
    people = say("report", path, report)
    root = json.loads(say("report", path, report, "--format", "json"))
    has_cards = any("headline" in f for f in root["findings"])
    texts = [f["text"] for f in root["findings"]]
    comments = say("report", path, report, "--format", "csv")
    head = [line[len("# finding: "):] for line in comments.splitlines() if line.startswith("# finding: ")]
    notes = [line[len("# note: "):] for line in comments.splitlines() if line.startswith("# note: ")]
    plain = all(f == f.encode("ascii", "ignore").decode() and "\x1b" not in f for f in texts)
    tables = tables_of(comments)
    bad = [t for t in tables if len({len(r) for r in tables[t]}) != 1 or len(tables[t]) != 1 + len(root["tables"][t])]
    if plain and has_cards and [card_of(f) for f in root["findings"]] != cards(people)[:len(texts)]:
        bad.append((texts, people))
    # some of report why's are indented, and lines are broken
    if plain and not has_cards and " ".join(people.split()).find(" ".join(" ".join(texts).split())):
        bad.append((texts, people))
    if len(head) != len(texts) or len(notes) != len(root["notes"]) or set(tables) != set(root["tables"]) or (plain and head != texts):
        bad.append((head, texts, list(tables)))
    if not all(isinstance(f["figures"], dict) for f in root["findings"]):
        bad.append(root["findings"])
    return bad, root


def check_next(folder):
    """The command line of a finding can be pasted into a shell: the path is one argument, regardless of its characters."""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="a"', "sched_run pid=10 tid=10 start=@1 time=@7 state=SCHED_SLEEP",
             "meta_end time=@8 reason=END_SIGNAL"]
    for name in ("it's; touch here $(touch here)", "two\nlines\\'\t", "x" * 100 + "/" + "y" * 200 + "/" + "z 5 more"):
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        path, found = written(folder, name, lines, "idle.schema.json")
        line = found[0]["next"]
        shown = subprocess.run(["bash", "-c", "set -- " + line + "; printf %s \"$3\""], capture_output=True, text=True, cwd=folder)
        ok(shown.stdout == path and not os.path.exists(os.path.join(folder, "here")), f"a shell reads {name[:8]!r}.. as one argument", line)
    line = json.loads(say("report", path, "--time", "1.5..4", "--tid", "10", "--format", "json"))["findings"][0]["next"]
    ok(line.endswith(" -p 10 --tid 10 --time 1.5..4"), "the command line keeps the selection", line[-60:])


def check_disk(folder):
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="a"', *(
        f"sched_off pid=10 tid=10 start=@{t} time=@{t}.9 wake=@{t}.9 state=SCHED_BLOCKED" for t in range(1, 6)), *(
        f"disk_io pid=10 tid=10 start=@{t} issued=@{t} time=@{t}.9 disk=\"sda\" op=DISK_FLUSH dev=1 ino=7" for t in (1, 2))]
    found = first_of(written(folder, "flush", lines, merged_schema(folder))[1], pid=10, kind="disk")
    ok("2 flushes (sda), 900.000 ms each" in found["text"], "the plural is used for several", found["text"])
    found = first_of(written(folder, "flush1", lines[:-1], merged_schema(folder))[1], pid=10, kind="disk")
    ok("1 flush (sda), 900.000 ms;" in found["text"] + ";" or "1 flush (sda), 900.000 ms." in found["text"], "the singular is used for one", found["text"])
    found = first_of(written(folder, "blocked", lines[:-2], merged_schema(folder))[1], pid=10, kind="blocked")
    ok(" offcpu -p 10" in found["next"], "without disk I/O in the trace the named report is another one, with rows", found["next"])


def check_other_file(folder):
    """fsync() of one file, while most requests of the process are reads of a library"""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="a"', 'syscall_file time=@0.1 pid=10 tid=10 file=1 ino=8 dev=1 path="/srv/orders.db"',
             'disk_file time=@0.1 pid=10 tid=10 dev=1 ino=7 path="/usr/lib/libcrypto.so.3"', *(
        f"sched_off pid=10 tid=10 start=@{t} time=@{t}.9 wake=@{t}.9 state=SCHED_BLOCKED" for t in range(1, 6)), *(
        f"syscall pid=10 tid=10 start=@{t} time=@{t}.9 nr=SYS_fsync file=1 sleeps=1" for t in range(1, 6)),
        'disk_io pid=10 tid=10 start=@0.2 issued=@0.2 time=@0.9 disk="sda" op=DISK_READ dev=1 ino=7']
    text = first_of(written(folder, "other", lines, merged_schema(folder))[1], pid=10, kind="disk")["text"]
    ok("5 times in fsync of /srv/orders.db" in text and "libcrypto" not in text, "a call is said to be of its own file", text)


def check_many_asleep(folder):
    """Idle threads rank low, regardless of their number."""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="pool"', 'proc_task time=@0 pid=20 tid=20 ppid=1 comm="work"', *(
        f"sched_off pid=10 tid={t} start=@0 time=@8 state=SCHED_SLEEP" for t in range(10, 310)),
        "sched_run pid=20 tid=20 start=@1 time=@4 state=SCHED_SLEEP", "meta_end time=@8 reason=END_SIGNAL"]
    found = written(folder, "many", lines, "idle.schema.json")[1]
    ok(found[0]["pid"] == 20, "300 sleeping threads rank behind one that works for 3 s", [f["text"] for f in found][:2])


def check_many(folder):
    """More findings than are stored at a time; the last process has the largest."""
    lines = [f"sched_off pid={pid} tid={pid} start=@1 time=@{3 if pid < 6000 else 6} wake=@3 state=SCHED_BLOCKED"
             for pid in range(1001, 6001)]
    path = written(folder, "many", lines + ["meta_end time=@8 reason=END_SIGNAL"], "os.schema.json")[0]
    rows = json.loads(say("report", path, "--format", "json"))["tables"]["findings"]
    ok(rows[0]["pid"] == 6000 and len(rows) == 500, "of 5000 findings the top 500 are stored, by their time", len(rows), rows[:1])


def check_taker(folder):
    """Process 20 ran for 5 of 8 s on one CPU; thread 10 was runnable for 4 of these, 60 other threads for a short time each."""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="late"', 'proc_task time=@0 pid=20 tid=20 ppid=1 comm="hog"',
             "sched_run pid=20 tid=20 start=@1 time=@6 state=SCHED_SLEEP",
             "sched_off pid=10 tid=10 start=@1 time=@5 wake=@1 state=SCHED_RUNNABLE",
             "sched_run pid=10 tid=10 start=@5 time=@8 state=SCHED_SLEEP", *(
                 line for t in range(11, 71) for line in (
                     f"sched_off pid=10 tid={t} start=@1 time=@1.3 wake=@1 state=SCHED_RUNNABLE",
                     f"sched_off pid=10 tid={t} start=@1.3 time=@8 wake=@8 state=SCHED_SLEEP")),
             "meta_end time=@9 reason=END_SIGNAL"]
    found = first_of(written(folder, "taker", lines, "idle.schema.json")[1], pid=10, kind="cpu")
    ok("; hog 20 had these CPUs for 56% of the time" in found.get("text", ""), "a share of the CPUs' time is at most all of it",
       found.get("text"))
    ok(found["counterpart"]["pid"] == 20 and found["counterpart"]["share_percent"] is None, "it is not given as a share of the lost time",
       found["counterpart"])


def check_condition(folder):
    """One function waits for a condition that thread 40 signals, and rarely for a lock that three threads take in turn."""
    lines = ['proc_task time=@0 pid=40 tid=40 ppid=1 comm="pool"',
             'meta_code time=@0 code=1 name="work" file="/app/pool.py" line=10 kind=FRAME_PYTHON',
             'meta_code time=@0 code=2 name="pthread_cond_wait" file="/lib/libc.so.6" line=0 kind=FRAME_NATIVE',
             "meta_frame time=@0 frame=1 caller=0 code=1 line=12 kind=FRAME_PYTHON",
             "meta_frame time=@0 frame=2 caller=1 code=2 line=0 kind=FRAME_NATIVE"]
    waits = [(41 + i % 3, 1 + i * 0.05, 1.125 + i * 0.05, 0x100, 41 + (i + 2) % 3, 1) for i in range(24)]
    waits += [(41 + j, 2.4 + i * 0.4 + j * 0.01, 2.7 + i * 0.4 + j * 0.01, 0x200, 40, 2) for i in range(10) for j in range(3)]
    for tid, start, end, lock, waker, stack in waits:
        span = f"pid=40 tid={tid} start=@{start:.3f} time=@{end:.3f}"
        lines += [f"sched_off {span} wake=@{end:.3f} waker_pid=40 waker_tid={waker} state=SCHED_SLEEP",
                  f"sample_off {span} stack={stack} in_call=1 nr=SYS_futex reason=SAMPLE_LOCK futex=0x{lock:x} lock=0x{lock:x}",
                  f"sample_wake pid=40 tid={waker} time=@{end:.3f} since=@{start:.3f} futex=0x{lock:x} lock=0x{lock:x} "
                  f"woken_pid=40 woken_tid={tid} value={2 if lock == 0x100 else 0}"]
    found = written(folder, "condition", [*lines, "meta_end time=@8 reason=END_SIGNAL"], merged_schema(folder))[1]
    ended = [(f["kind"], f["counterpart"]["tid"], f["text"]) for f in found if f.get("kind") == "condition"]
    ok(len(ended) == 2 and all(tid == 40 for _, tid, _ in ended), "waits for a condition have a waker, the thread that signals it, but no holder",
       ended or found)


def check_library(folder):
    """A report of CUDA's calls does not show the calls of another library."""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="a"', "tiny_work pid=10 tid=10 start=@1 time=@4", "meta_end time=@8 reason=END_SIGNAL"]
    found = first_of(written(folder, "library", lines, merged_schema(folder))[1], pid=10, kind="library")
    ok(found.get("next", "").endswith(" offcpu -p 10") and found["lost_ns"] == 3_000_000_000, "a call of another library is in report offcpu", found)


def check_collections(folder):
    """Of 8 s a quarter of the samples are in the collector, below a function of two lines; in 200 others the collector runs a finalizer"""
    lines = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="python3"', "sched_run pid=10 tid=10 start=@0 time=@8 state=SCHED_SLEEP",
             'meta_code time=@0 code=1 name="parse" file="/app/parse.py" line=10 kind=FRAME_PYTHON',
             'meta_code time=@0 code=2 name="gc_collect_main.constprop.0" file="/usr/bin/python3.11" line=0 kind=FRAME_NATIVE',
             'meta_code time=@0 code=3 name="subtype_traverse" file="/usr/bin/python3.11" line=0 kind=FRAME_NATIVE',
             'meta_code time=@0 code=4 name="gc_collect_main" file="/app/boehm.so" line=0 kind=FRAME_NATIVE',
             'meta_code time=@0 code=5 name="collect" file="/app/parse.py" line=20 kind=FRAME_PYTHON']
    frames = [(1, 0, 1, 12), (2, 1, 2, 0), (3, 2, 3, 0), (4, 0, 1, 14), (5, 4, 2, 0), (6, 1, 4, 0), (7, 2, 5, 21)]
    lines += [f"meta_frame time=@0 frame={f} caller={caller} code={code} line={line} kind=FRAME_{'PYTHON' if line else 'NATIVE'}"
              for f, caller, code, line in frames]
    # stack 6: a function of that name in another library; 7: a finalizer
    stacks = [3] * 60 + [5] * 40 + [1] * 50 + [6] * 50 + [7] * 200
    lines += [f"sample_cpu time=@{i * 0.02:.6f} pid=10 tid=10 period=20000000 stack={stack}" for i, stack in enumerate(stacks)]
    end = "meta_end time=@8 reason=END_SIGNAL"
    found = [f for f in written(folder, "sampled", [*lines, end], merged_schema(folder))[1] if f.get("kind") == "gc"]
    ok(len(found) == 1 and found[0]["lost_ns"] == 2_000_000_000 and found[0]["confidence"] == "attributed" and
       " in 25% of 8.000 s in parse (parse.py:12); estimate from 100 samples" in found[0]["text"] and "-t +python" in found[0]["text"],
       "collections by samples: their share, its error, where, and which flag would count them", found)
    lines += [f"python_gc pid=10 tid=10 start=@{t} time=@{t}.2 generation=2 collected=5 stack=1" for t in range(1, 7)]
    found = [f for f in written(folder, "both", [*lines, end], merged_schema(folder))[1] if f.get("kind") == "gc"]
    ok(len(found) == 1 and found[0]["lost_ns"] == 1_200_000_000 and found[0]["confidence"] == "measured",
       "collections that were recorded are not counted by samples, too", found)


def check_merged(folder):
    """Two workers wait in the same function, each for a different process."""
    lines = ['meta_code time=@0 code=1 name="ask" file="/app/worker.py" line=10 kind=FRAME_PYTHON',
             "meta_frame time=@0 frame=1 caller=0 code=1 line=12 kind=FRAME_PYTHON"]
    for pid, peer in ((10, 20), (11, 21)):
        lines += [f'proc_task time=@0 pid={pid} tid={pid} ppid=1 comm="worker"', f'proc_task time=@0 pid={peer} tid={peer} ppid=1 comm="peer"']
        for i in range(5):
            span = f"pid={pid} tid={pid} start=@{1 + i} time=@{1 + i}.9"
            lines += [f"sched_off {span} wake=@{1 + i}.9 waker_pid={peer} waker_tid={peer} state=SCHED_SLEEP",
                      f"sample_off {span} stack=1 in_call=1 nr=SYS_recvfrom reason=SAMPLE_IO"]
    found = first_of(written(folder, "merged", [*lines, "meta_end time=@7 reason=END_SIGNAL"], merged_schema(folder))[1], processes=2)
    ok(found.get("counterpart", {"pid": 1})["pid"] is None and "ended by" not in found["text"],
       "a merged finding states nothing in which its parts differ", found.get("text"))


with tempfile.TemporaryDirectory() as there:
    reports = [r["name"] for r in json.loads(say("list", "reports", "--format", "json"))["tables"]["reports"]]
    for name in ("run", "os", "convoy", "idle", "disk", "nccl"):
        trace = golden(there, name)
        wrong = {r: check_formats(trace, r)[0] for r in reports}
        wrong = {r: w for r, w in wrong.items() if w}
        ok(not wrong, f"{name}: {len(reports)} reports: findings and notes are in JSON and in comments of the CSV", wrong)
    root = check_formats(golden(there, "convoy"), "offcpu")[1]
    first, rows = root["findings"][0], root["tables"]["findings"]
    ok(all(first[k] == rows[0][k] for k in ("kind", "pid", "threads", "lost_ns", "share_percent", "call", "object", "next", "confidence")) and
       first["code"]["function"] == rows[0]["function"] and first["counterpart"]["pid"] == rows[0]["caused_by_pid"],
       "a finding's fields are those of its row", (first, rows[0]))
    ok(first["kind"] == "lock" and first["pid"] == 10 and first["threads"] == 3 and 0 < first["lost_ns"] <= first["wall_ns"] and
       first["call_times"] <= first["times"] and first["next"].endswith("convoy.sonde locks -p 10"),
       "findings name the affected, the lost time and the command that shows more", first)
    ok(first["text"].startswith("convoy 10 (3 threads) waited ") and not any(r["pid"] in (20, 30) and r["kind"] == "lock" for r in rows),
       "threads that wait for a queue or a barrier wait for no lock", [r["text"] for r in rows])
    root = check_formats(golden(there, "run"), "gil")[1]
    ok(any(f["figures"].get("waits") == 5 and f["figures"].get("pid") == 4711 for f in root["findings"]),
       "report gil has findings", root["findings"])

    # a process with a runtime but without any event that is recorded by default
    events = ['proc_task time=@0 pid=10 tid=10 ppid=1 comm="server"',
              'proc_map time=@0 pid=10 tid=10 path="/usr/bin/python3.11"',
              "meta_end time=@8 reason=END_SIGNAL"]
    lines = [card[0] for card in cards(say("report", make(there, "mute", events, "schema.json", "proc,cuda,gil,nccl")))]
    ok(sum("`sonde record -t +syscall,lock` shows what its threads waited for, `-F 99` where they ran." in line
           for line in lines) == 1 and lines[0].startswith("What server 10 did in 100% of 8.000 s was not recorded"),
       "without family sched the report names the flags that show more", lines[:4])
    events.append("sched_run pid=10 tid=10 start=@1 time=@7 state=SCHED_SLEEP")
    lines = say("report", make(there, "busy", events, "schema.json", "proc,gil,sched")).splitlines()
    ok(any(line == "server 10 ran for 75% of 8.000 s: `sonde record -F 99` shows in which functions." for line in lines),
       "with family sched it names the flag that adds samples", lines[:6])
    lines = say("report", make(there, "sampled", events, "schema.json", "proc,gil,sched,sample")).splitlines()
    ok(not any("sonde record" in line for line in lines), "it does not name what was recorded", lines[:6])
    ok(lines.index("1 process was traced for 8.000 s.") > 0, "the count of processes is not the first line", lines[:3])
    for check in (check_next, check_disk, check_other_file, check_many_asleep, check_many, check_taker, check_condition,
                  check_library, check_collections, check_merged):
        check(there)
done()
