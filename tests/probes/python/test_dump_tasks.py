#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=120 waits
"""Compares the asyncio tasks of `sonde dump` with what each CPython says of its own tasks."""
import collections
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
import gil_lib
import tap

WORK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dump_tasks_work.py")


def stacks_of(rows, role):
    """The stacks of a role: (file, line, function) from the innermost coroutine on -> tasks"""
    groups = collections.defaultdict(list)
    for row in rows:
        if row["role"] == role:
            groups[row["group"], row["tasks"]].append((row["file"], row["line"], row["function"]))
    return {tuple(frames): tasks for (_, tasks), frames in groups.items()}


def without_generator(stack):
    """CPython does not show the asynchronous generator that `async for` waits for."""
    names = [f[2] for f in stack]
    return stack[names.index("read_all"):] if "read_all" in names else stack


def check(python):
    name = python.name
    with gil_lib.script(python, WORK) as command, subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True) as p:
        truth = collections.Counter(tuple(map(tuple, frames)) for frames in json.loads(p.stdout.readline()))
        # the main task waits for the others after it has printed
        dump = subprocess.run([gil_lib.SONDE, "dump", str(p.pid), "--format", "json"], stdout=subprocess.PIPE, timeout=60, check=True)
        text = subprocess.run([gil_lib.SONDE, "dump", str(p.pid)], stdout=subprocess.PIPE, timeout=60, check=True, universal_newlines=True)
        p.kill()
    rows = json.loads(dump.stdout)["tables"]["tasks"]
    got = {without_generator(stack): n for stack, n in stacks_of(rows, "waits").items() if stack[-1][2] != "main"}
    tap.ok(got == dict(truth), "asyncio tasks, %s: %d tasks with the stacks that CPython has" % (name, sum(truth.values())),
           "%s\ntruly\n%s" % (got, dict(truth)))
    holders = stacks_of(rows, "holds")
    tap.ok([stack[-1][2] for stack in holders] == ["renew"], "asyncio tasks, %s: the holder of the lock" % name, holders)
    tap.ok("150 tasks wait:" in text.stdout and "of which" in text.stdout, "asyncio tasks, %s: as text" % name, text.stdout[-2000:])


gil_lib.each_python("asyncio tasks", check)
tap.done()
