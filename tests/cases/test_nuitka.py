#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=300
# case: partly | py-spy: Nuitka compiles Python to C, which makes Python frames | No lines; from 3.11 on
"""Functions that Nuitka compiled are on stacks by their names, without wrong lines, and without `[frames missing]`."""
import json
import os
import subprocess

from case import FOLDER, finish, record, say, script, start
from pip_packages import install
from tap import ok, skip_all

PROGRAM = script("nui.py", """
def slow_part():
    x = 0
    for i in range(300000):
        x = (x * 31 + i) % 1000003
    return x
def main():
    print("ready", flush=True)
    while True: slow_part()
main()
""")
venv = os.path.join(FOLDER, "venv", "bin", "python")
compiled = os.path.join(FOLDER, "nui.bin")
options = ["--quiet", "--lto=no", f"--output-dir={FOLDER}"]
if not install(venv, "nuitka") or subprocess.run([venv, "-m", "nuitka", *options, PROGRAM], capture_output=True, check=False).returncode:
    skip_all("Nuitka can't be installed, or not be used")
program = start(compiled, until="ready")
trace = record("-d", "2", "-F", "199", "-p", program.pid)
lines = json.loads(say("report", trace, "lines", "--format", "json"))["tables"]["lines"]
ok(lines and lines[0]["function"] == "slow_part" and lines[0]["self_percent"] > 90, "the function that computes", lines)
ok(not [row for row in lines if row["line"]], "no wrong lines", lines)
stacks = [line for line in say("export", trace, "--to", "folded", "--event", "on-cpu").splitlines()
          if "<module> (nui.py);main (nui.py);slow_part (nui.py)" not in line or "missing" in line]
ok(not stacks, "whole stacks", stacks)
finish()
