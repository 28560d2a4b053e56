#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 gate
"""`sonde report FILE why`: a thread that waits for a lock, whose holder sleeps, explained to the end."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from diff_lib import ASKING, CHAIN, folder, record, say, write_program
import bounds
import own_clock
from tap import done, ok, skip_all


def why(trace, *subject):
    return json.loads(say("report", trace, "why", *subject, "--format", "json"))


def tiles(result):
    """Do the parts of each level sum to its time, and its shares to 100%?"""
    bad = []
    for level in result["tables"]["levels"]:
        parts = [p for p in result["tables"]["parts"] if p["depth"] == level["depth"]]
        if sum(p["total_ns"] for p in parts) != level["wall_ns"] or abs(sum(p["share_percent"] for p in parts) - 100) > 0.01:
            bad.append((level, parts))
    return bad


def check_chain(name, result, allowed):
    levels = result["tables"]["levels"]
    first, last = levels[0], levels[-1]
    ok(len(levels) == 2 and first["kind"] == "lock" and first["function"] == "handle" and first["caused_by_function"] == "holder",
       f"{name}: it waited for a lock in handle(), held by holder()", json.dumps(levels))
    bounds.between(f"{name}: for as long as both threads' own clocks say", first["lost_ns"], *allowed)
    most = max(p["total_ns"] for p in result["tables"]["parts"] if p["depth"] == last["depth"])
    ok(last["kind"] == "sleep" and last["function"] == "holder" and last["end"] == "cause" and last["lost_ns"] == most,
       f"{name}: which mostly slept, and there the chain ends", json.dumps(last), most)
    ok(not tiles(result), f"{name}: the parts of each level sum to its time", json.dumps(tiles(result)))


def check_names(trace, pid):
    result = why(trace, "no_such_thing")
    ok("no process, thread or function 'no_such_thing'" in result["findings"][0]["text"] and not result["tables"].get("levels"),
       "an unknown name", result["findings"][0]["text"])
    result = why(trace, "hol")
    ok(result["tables"].get("levels") and result["tables"]["levels"][0]["name"].startswith("holder"), "a part of one name is enough",
       json.dumps(result["findings"]))
    result = why(trace, "h")
    names = {c["name"] for c in result["tables"].get("candidates", [])}
    ok({"holder (chain.py)", "handle (chain.py)"} <= names, "several matches: they are listed", sorted(names))
    result = why(trace, "chain.py")
    ok(result["tables"].get("levels") and result["tables"]["levels"][0]["pid"] == pid, "a script's name is its process",
       json.dumps(result["findings"]))


def check_peer(tmp):
    """The wait for a process of this machine is followed to what that one did."""
    trace, _ = record(tmp, "asking", write_program(tmp, "asking.py", ASKING), 2)
    levels = why(trace, "ask")["tables"]["levels"]
    first, last = levels[0], levels[-1]
    ok(first["kind"] == "peer" and first["function"] == "ask" and first["caused_by_pid"] not in (None, first["pid"]),
       "a wait for another process", json.dumps(levels))
    ok(len(levels) == 2 and last["pid"] == first["caused_by_pid"] and last["kind"] == "sleep" and last["function"] == "answer"
       and last["end"] == "cause", "which slept", json.dumps(levels))


def main():
    if os.geteuid():
        skip_all("tracing needs root")
    tmp = folder()
    script = write_program(tmp, "chain.py", CHAIN)
    trace, out = record(tmp, "chain", script, 3)
    allowed = own_clock.lock_waits(*json.loads(out))
    first = why(trace)
    check_chain("the first finding", first, allowed)
    level = first["tables"]["levels"][0]
    check_chain("the thread", why(trace, str(level["tid"])), allowed)
    check_chain("the process", why(trace, str(level["pid"])), allowed)
    check_chain("the function", why(trace, "handle"), allowed)
    check_names(trace, level["pid"])
    check_peer(tmp)
    people = say("report", trace, "why")
    ok("\n  Meanwhile " in people and "held by holder (chain.py:" in people, "people read it as sentences", people[:800])
    shutil.rmtree(tmp)
    done()


main()
