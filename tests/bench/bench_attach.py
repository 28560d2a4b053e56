#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The effect of attaching many probes on a busy target that maps, touches and unmaps memory without pause.

For libraries of 400 and 3,101 functions, attached in one link and in sonde's batches: ms to attach and detach, and the longest
step of the target's mapping thread meanwhile, compared with its longest step in an equal time before. The table has the
medians of all rounds and, in brackets, the worst. Goals: 50 ms for 400, 150 ms for 3,101, 5 ms a step.

Environment: ROUNDS (9), SETTINGS ("400:SITES:PAUSE_US ..." more rows).
"""
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
B = os.environ.get("B", os.path.join(ROOT, "build"))
ROUNDS = int(os.environ.get("ROUNDS", 9))
GOALS = {400: 50, 3101: 150}


def library(tmp, n):
    """Builds a library of n functions of about 130 bytes. Returns its path and their file offsets."""
    path, source = os.path.join(tmp, f"lib{n}.so"), os.path.join(tmp, f"lib{n}.c")
    with open(source, "w") as f:
        for i in range(n):
            f.write(f'int probed_{i}(int x) {{ __asm__ volatile(".skip 100, 0x90"); return x + 1; }}\n')
    subprocess.run(["cc", "-O0", "-fcf-protection=none", "-shared", "-fPIC", "-o", path, source], check=True)
    names = subprocess.run(["nm", "-D", path], capture_output=True, text=True, check=True).stdout
    return path, sorted(int(line.split()[0], 16) for line in names.splitlines() if " T probed_" in line)


def ask(child):
    """The target's longest step in ms since the last query"""
    child.stdin.write("\n")
    child.stdin.flush()
    return int(child.stdout.readline().split()[0]) / 1e6


def answer(child, text):
    child.stdin.write(text)
    child.stdin.flush()
    return float(child.stdout.readline().split()[1])


def one(path, offsets, setting):
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    target = subprocess.Popen([os.path.join(B, "tests/workloads/busy_faults"), path, "2"], **pipe)
    target.stdout.readline()
    links = subprocess.Popen([os.path.join(B, "tests/bench/attach_links"), path, *map(str, setting)], **pipe)
    time.sleep(0.3)
    ask(target)
    time.sleep(0.2)
    before = ask(target)
    attach = answer(links, "".join(f"{o:#x}\n" for o in offsets) + "\n")
    attach_step = ask(target)
    time.sleep(0.1)
    ask(target)
    detach = answer(links, "\n")
    detach_step = ask(target)
    for child in (links, target):
        child.stdin.close()
        child.wait()
    return before, attach, attach_step, detach, detach_step


def main():
    tmp = tempfile.mkdtemp()
    rows = [(n, s) for n in GOALS for s in ((n, 0), ())]
    rows += [(int(n), (int(s), int(p))) for n, s, p in (x.split(":") for x in os.environ.get("SETTINGS", "").split())]
    try:
        built = {n: library(tmp, n) for n in {n for n, _ in rows}}
        print(f"{'functions in':28} {'step before':>15} {'attach ms':>17} {'step':>15} {'detach ms':>17} {'step':>15} {'of goal':>8}")
        for n, setting in rows:
            figures = list(zip(*(one(*built[n], setting) for _ in range(ROUNDS))))
            name = f"{n} " + ("as sonde does" if not setting else "one link" if setting[0] >= n else
                              f"links of {setting[0]}, {setting[1]} us")
            cells = [f"{statistics.median(f):.1f} ({max(f):.1f})" for f in figures]
            print(f"{name:28} {cells[0]:>15} {cells[1]:>17} {cells[2]:>15} {cells[3]:>17} {cells[4]:>15} "
                  f"{statistics.median(figures[1]) / GOALS.get(n, 150):8.2f}", flush=True)
    finally:
        shutil.rmtree(tmp)


if os.geteuid():
    print("not root")
    sys.exit(77)
main()
