#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits gate
# case: right | speedscope, perf: an export has all or nothing, and a viewer refuses spans that overlap by rounding |
"""`export --time 0.5..1 -p PID` has the spans of this process and time alone; as doubles, no span ends after the next one's begin."""
import collections
import json

from case import FOLDER, finish, record, say, script, start
from tap import ok

work = script("work.py", """import threading, time
def turns():
    while True:
        sum(range(2000))
        time.sleep(0.0005)
for _ in range(3):
    threading.Thread(target=turns, daemon=True).start()
print("ready", flush=True)
turns()
""")
programs = [start("/usr/bin/python3", work, until="ready") for _ in range(2)]
trace = record("-d", 2, "-t", "+sched", *(word for p in programs for word in ("-p", p.pid)))
path = FOLDER + "/part.json"


def spans(*options):
    """The spans of the scheduler: (pid, tid) -> [(ts, dur)], in microseconds since the trace began"""
    say("export", trace, "--to", "chrome", "-o", path, "-f", *options)
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    found = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X" and e.get("cat") == "sched":
            found[e["pid"], e["tid"]].append((e["ts"], e["dur"]))
    return found


def count(found):
    return sum(map(len, found.values()))


everything, part = spans(), spans("--time", "0.5..1", "-p", programs[0].pid)
ok({pid for pid, _ in everything} == {p.pid for p in programs} and {pid for pid, _ in part} == {programs[0].pid}, "the process alone", sorted(part))
first = min(ts + dur for thread in part.values() for ts, dur in thread)
last = max(ts for thread in part.values() for ts, _ in thread)
ok(0.2e6 < last - first <= 0.5e6, "the time alone", (first, last))
whole = sum(ts <= last and ts + dur >= first for key, thread in everything.items() if key[0] == programs[0].pid for ts, dur in thread)
ok(count(part) == whole, "all of it", (count(part), whole))
late = sum(a + dur > b for thread in everything.values() for (a, dur), (b, _) in zip(sorted(thread), sorted(thread)[1:]))
ok(count(everything) > 1000 and not late, "no span ends after the begin of the next", (count(everything), late))
finish()
