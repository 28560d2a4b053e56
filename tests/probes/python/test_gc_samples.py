#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=400
"""The share of garbage collections by samples alone, against gc.callbacks of each CPython there is."""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gil"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
import gil_lib
import tap
from bounds import share
from sonde_cli import Sonde
from sonde_trace import Trace

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS, HZ, TOGETHER = 3, 999, 3

Program = collections.namedtuple("Program", "name process")


def start(name, command, env):
    with open(os.path.join(HERE, "gc_work.py")) as f:
        # findings with the same function are merged: each program gets a name of its own
        text = f"exec(compile({f.read()!r}, '/{name}.py', 'exec'))"
    p = subprocess.Popen([*command, "-S", "-c", text, str(SECONDS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    return Program(name, p) if p.stdout.readline() else tap.ok(False, name + " starts")


def stripped(python, folder):
    """The command and environment of a copy without symbols, as in Docker's images; it has no USDT probes either."""
    copy = os.path.join(folder, os.path.basename(python.binary))
    subprocess.run(["strip", "--strip-all", "-o", copy, python.binary], check=True)
    env = {**os.environ, "PYTHONHOME": os.path.dirname(os.path.dirname(python.exe))}
    if os.path.realpath(python.exe) == os.path.realpath(python.binary):
        return [copy], env
    return [python.exe], {**env, "LD_LIBRARY_PATH": folder}


def start_all(folder):
    found, missing = gil_lib.pythons()
    for name in missing:
        tap.skip("collections by samples, " + name, missing[name])
    programs = [start(p.name, [*([] if p.root == "/" else ["/usr/sbin/chroot", p.root]), p.exe], {**os.environ, "LC_ALL": "C.UTF-8"})
                for p in found.values()]
    for name in ("3.8 pyenv", "3.12 pyenv"):
        if name in found and shutil.which("strip"):
            programs.append(start(name + ", stripped", *stripped(found[name], folder)))
        else:
            tap.skip(name + ", stripped", missing.get(name, "no strip"))
    return [p for p in programs if p]


def check(program, line, trace, findings):
    total, collecting = map(float, line.split())
    pid = program.process.pid
    sampled = sum(1 for e in trace.events("sample_cpu") if e["pid"] == pid)
    mine = [f for f in findings if f.get("kind") == "gc" and f["pid"] == pid]
    tap.ok(len(mine) == 1 and mine[0]["confidence"] == "attributed" and mine[0]["code"]["function"].split(".")[0] in ("Node", "build", "__init__"),
           f"collections by samples, {program.name}: their function", mine)
    share(f"collections by samples, {program.name}: their share", sum(f["lost_ns"] for f in mine) * HZ / 1e9 / max(1, sampled), collecting / total,
          sampled, systematic=0.01, why="the callbacks add to the time between the two readings of the clock")


def record(programs, out):
    """Records while these work; returns what they print, by program, the trace and its findings."""
    recording = Sonde(out, "-t", "sample,proc", "-F", str(HZ), "-p", ",".join(str(p.process.pid) for p in programs))
    for p in programs:
        p.process.stdin.write("go\n")
        p.process.stdin.flush()
    lines = [p.process.stdout.readline() for p in programs]
    for p in programs:
        p.process.stdin.close()
        p.process.wait()
    recording.end(None)
    report = subprocess.run([gil_lib.SONDE, "report", out, "--format", "json"], stdout=subprocess.PIPE, check=True).stdout
    return lines, Trace(out), json.loads(report)["findings"]


def main():
    if os.geteuid():
        tap.skip_all("tracing needs root")
    with tempfile.TemporaryDirectory() as folder:
        programs = start_all(folder)
        for i in range(0, len(programs), TOGETHER):
            lines, trace, findings = record(programs[i:i + TOGETHER], os.path.join(folder, "gc.sonde"))
            for p, line in zip(programs[i:], lines):
                check(p, line, trace, findings)
    tap.done()


main()
