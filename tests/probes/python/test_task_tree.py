#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits gate
"""Compares names, stacks and who awaits whom in `sonde dump` with the tasks of the program itself, and with asyncio.capture_call_graph."""
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
import tap
from pip_packages import install
from waiting import wait_state

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "task_tree_work.py")
CIRCLE = {"left", "right"}


def dump(pid, *options):
    return subprocess.run([gil_lib.SONDE, "dump", str(pid), *options], stdout=subprocess.PIPE, timeout=60, check=True, universal_newlines=True).stdout


def parents_of(text):
    """{name: name of the task above it} of single tasks in the tree"""
    parents, above = {}, {}
    for line in text.splitlines():
        head, _, name = line.partition(": ")
        if " task" not in head or " wait" not in head or "," in name or " in `async with`" in line:
            continue
        depth = len(head) - len(head.lstrip())
        above[depth] = name
        parents[name] = above.get(depth - 4)
    return parents


def check(python):
    with gil_lib.script(python, WORK) as command:
        check_program(python.name, command)


def check_program(name, command):
    with subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True) as p:
        stacks, awaits, graph = json.loads(p.stdout.readline())
        wait_state(p.pid, "S")
        tables = json.loads(dump(p.pid, "--format", "json"))["tables"]
        text = dump(p.pid)
        p.kill()
    groups = collections.defaultdict(list)
    for row in tables["tasks"]:
        if row["role"] == "waits":
            groups[row["group"]].append([row["file"], row["line"], row["function"]])
    names = {row["task"]: row["name"] for row in tables["task_names"]}
    got = {row["name"]: groups[row["group"]] for row in tables["task_names"] if row["name"] in stacks}
    tap.ok(got == stacks and len(names) == len(stacks) + 3, "%s: %d tasks with the names and the stacks that CPython has" % (name, len(stacks)),
           "%s\ntruly\n%s" % (got, stacks))
    pairs = sorted([names[row["task"]], names[row["awaits"]]] for row in tables["task_awaits"])
    tap.ok([pair for pair in pairs if pair[1] in stacks and pair[0] in stacks] == sorted(awaits), "%s: who awaits whom" % name,
           "%s\ntruly\n%s" % (pairs, sorted(awaits)))
    if graph:
        tap.ok([pair for pair in pairs if not CIRCLE & set(pair) and pair[0] in stacks] == sorted(graph),
               "%s: as asyncio.capture_call_graph has it" % name, "%s\ntruly\n%s" % (pairs, sorted(graph)))
    others = {row["state"]: row["name"] for row in tables["task_names"] if row["state"] != "waits"}
    tap.ok(set(others) == {"runs", "ready"} and others["ready"] == "new", "%s: the task that runs, and one that is ready" % name, others)
    tree = parents_of(text)
    tap.ok(tree.get("shields/0") == "shields" and tree.get("gathers/all") == "gathers" and tree.get("gathers") is None,
           "%s: the tree has the awaited tasks below those that await them" % name, text)


gil_lib.each_python("asyncio tasks", check)
with tempfile.TemporaryDirectory(prefix="sonde-uvloop-") as venv:
    if install(venv + "/bin/python", "uvloop==0.23.0"):
        check_program("uvloop", [venv + "/bin/python", WORK, "uvloop"])
    else:
        tap.skip("uvloop", "it can't be installed")
tap.done()
