#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
"""`sonde report FILE why NAME` in synthetic traces: what names mean whose part occurs several times."""
import json
import tempfile

from stacks_lib import Stacks
from planted import say
from tap import done, ok


def why(path, *subject):
    return json.loads(say("report", path, "why", *subject, "--format", "json"))


def check_recursion(folder):
    """Two functions that call each other: the time of a stack is in each of them once."""
    s = Stacks()
    first, second = s.function("part_a", "/srv/a.py", 1), s.function("part_b", "/srv/a.py", 5)
    stack = s.frame(s.frame(s.frame(0, first, 1), second, 6), first, 2)
    for i in range(10):
        s.sample(0.01 * (i + 1), 100, stack, 1000000)
    rows = why(s.write(folder, "recursive"), "part")["tables"]["candidates"]
    ok(sorted((r["name"], r["wall_ns"]) for r in rows) == [("part_a (a.py)", 10000000), ("part_b (a.py)", 10000000)],
       "a function that is recursive through another one counts once in a stack", rows)


def check_threads(folder):
    """A function of many threads, in several stacks each"""
    s = Stacks()
    main, other = s.function("main", "/srv/a.py", 1), s.function("other", "/srv/a.py", 9)
    stacks = [s.frame(0, main, 1), s.frame(s.frame(0, main, 2), other, 9), s.frame(0, other, 9)]
    for i in range(300):
        s.sample(0.001 * (i + 1), 100 + i % 50, stacks[i % 3], 1000000)
    level = why(s.write(folder, "threads"), "main")["tables"]["levels"][0]
    ok(level["threads"] == 50 and level["wall_ns"] == 200 * 1000000, "each thread of a function counts once, and each of its samples", level)


def check_cut(folder):
    s = Stacks()
    for i in range(1001):
        s.sample(0.001 * (i + 1), 100, s.frame(0, s.function(f"name_{i}", "/srv/a.py", i + 1), 1), 1000000)
    result = why(s.write(folder, "many"), "name_")
    ok(len(result["tables"]["candidates"]) == 1000 and any("More names match" in n for n in result["notes"]),
       "a note says that only the first 1,000 names are listed", result["notes"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_recursion(folder)
        check_threads(folder)
        check_cut(folder)
    done()


main()
