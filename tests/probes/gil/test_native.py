#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300
"""The C function in which the GIL was held: planted functions, in a stripped interpreter and in one with symbols."""
import json
import os
import re
import subprocess

import gil_blame
import gil_lib
import tap
from cards import unwrapped
from sonde_cli import Sonde

SCENES = ("named", "regex", "io")


def report(out, pid, *options):
    return subprocess.run([gil_lib.SONDE, "report", out, "-p", str(pid), *options, "gil"], stdout=subprocess.PIPE, check=True,
                          universal_newlines=True, timeout=200).stdout


logged = set()  # (function, thread) that the programs have logged


def natives(out, pid, holder):
    """({C functions of that holder}, {C functions of other holders}, the text report)"""
    rows = json.loads(report(out, pid, "--format", "json"))["tables"]["blame"]
    mine = {r["native"] for r in rows if r["holder"].endswith(" " + holder)}
    # a holder whose stack was not read when others began to wait, as it had no CPU, has the name of its thread
    threads = {"thread %d" % tid for name, tid in logged if name == holder}
    return mine, {r["native"] for r in rows if not r["holder"].endswith(" " + holder) and r["holder"] not in threads}, report(out, pid)


def record(python, place, options):
    scenes = {name: gil_blame.Scene(python, place, name) for name in SCENES}
    out = os.path.join(place.here, "native.sonde")
    sonde = Sonde(out, "-t", "gil", *options, "-d", "60", *(x for s in scenes.values() for x in ("-p", str(s.p.pid))))
    gil_blame.running.append(sonde.process)
    for s in scenes.values():
        s.p.stdin.write("\n")
        s.p.stdin.flush()
    for s in scenes.values():
        s.end()
        logged.update((name, tid) for name, tid, _ in s.logs)
    sonde.end(None)
    return out, {name: s.p.pid for name, s in scenes.items()}


def check_named(name, out, pid):
    mine, others, people = natives(out, pid, "in_named_c")
    planted = "planted_burn (gil_plant.so)"
    tap.ok(mine == {planted}, f"{name}: the holder's C function is named", mine)
    tap.ok(planted not in others, f"{name}: no other holder has one", others, report(out, pid))
    tap.ok(re.search(rf", \d+% of \d+ samples in C: {re.escape(planted)}; affected: gil_planted.py:", unwrapped(people).split("\n")[0]),
           f"{name}: the finding names it too",
           people.split("\n")[0])


def check_python(python, place, stripped):
    out, pids = record(python, place, ["-F", "199"])
    check_named(python.name, out, pids["named"])
    mine, _, people = natives(out, pids["regex"], "in_regex")
    file = os.path.basename(python.binary)
    if stripped:
        tap.ok(mine == {file}, f"{python.name}: without symbols the file is named", mine)
    else:
        tap.ok(len(mine) == 1 and None not in mine and all(x.startswith("sre_") and x.endswith(f" ({file})") for x in mine),
               f"{python.name}: the interpreter's own function is named", mine)
    tap.ok("record -F" not in people, f"{python.name}: with samples no note asks for them", people)
    mine, _, people = natives(out, pids["io"], "crunch")
    tap.ok("planted_burn" not in str(mine) + people, f"{python.name}: samples of Python code name no planted function", mine)
    if stripped:
        tap.ok(" in C: " not in people.split("\n")[0], f"{python.name}: Python code is not reported as C code", people.split("\n")[0])


def check_without(python, place):
    out, pids = record(python, place, [])
    mine, others, people = natives(out, pids["named"], "in_named_c")
    tap.ok(mine | others == {None} and " in C: " not in people, "without samples no C function is named", (mine, others))
    tap.ok("`sonde record -F 99` names the C function" in people, "without samples the report names the flag that adds them", people)


def main():
    found, _ = gil_lib.pythons()
    some = [(n, n.endswith("debian")) for n in ("3.11 debian", "3.12 pyenv") if n in found]
    with gil_lib.Workplace() as place:
        try:
            for name, stripped in some:
                check_python(found[name], place, stripped)
            check_without(found["3.11 debian"], place)
        finally:
            for p in gil_blame.running:
                if p.poll() is None:
                    p.kill()
                    p.wait()
    if "3.12 pyenv" not in found:
        tap.skip("an interpreter with symbols", "pyenv has no 3.12")
    tap.done()


main()
